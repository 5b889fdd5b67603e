"""Costs of classifiers' predictions, such as seconds and tokens, and a search for dominated classifiers.

Classifier A dominates classifier B if A is at least as good as B and costs no more, and if A is also better
or cheaper.
"""

from __future__ import annotations

from pandas import DataFrame

from simllm.evaluation.classifiers.prediction_files import COSTS


def measure_costs(rows: DataFrame) -> dict[str, dict[str, float | None]]:
    """Compute the sum, the mean and the sum per right prediction of each cost that one classifier reports.

    Rows without a value are left out. "per right answer" is None if no prediction is right.
    """
    found: dict[str, dict[str, float | None]] = {}
    for name in COSTS:
        if rows[name].notna().any():
            total = float(rows[name].sum())
            # Right answers without a reported cost would make the others look cheaper.
            known = rows[rows[name].notna()]
            right = int((known["predicted"] == known["gold"]).sum())
            found[name] = {
                "sum": total,
                "per item": float(rows[name].mean()),
                "per right answer": total / right if right else None,
            }
    return found


def find_dominated(
    quality: dict[str, float | None], costs: dict[str, dict[str, dict[str, float | None]]]
) -> dict[str, list[str]]:
    """Map each dominated classifier to those that dominate it; a higher `quality` is better.

    `costs` has for each classifier the result of `measure_costs`.
    """
    found: dict[str, list[str]] = {}
    for a, b in ((a, b) for a in costs for b in costs if a != b):
        if costs[a].keys() != costs[b].keys():
            continue  # a cost that is not reported is unknown
        pairs = [(costs[a][name]["per item"] or 0.0, costs[b][name]["per item"] or 0.0) for name in costs[a]]
        mine, other = quality[a], quality[b]
        if pairs and mine is not None and other is not None:
            # As costs, of which less is better, too.
            pairs.append((-mine, -other))
            if all(x >= y for x, y in pairs) and any(x > y for x, y in pairs):
                found.setdefault(a, []).append(b)
    return found
