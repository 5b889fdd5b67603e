"""Comparison of runs by paired tests over their common items, with Holm's correction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from simllm.analysis.comparison import Comparison, compare_scores
from simllm.errors import InputError
from simllm.repair.results import AttemptResult, finished_by_item, patch_ratio
from simllm.stats.classification import average_pass_rate, pass_at_k

Attempts = Sequence[AttemptResult]
Figure = Callable[[Attempts], float | None]  # takes the finished attempts at one item; None if undefined


def compare_runs(runs: Mapping[str, Attempts]) -> dict[str, Comparison]:
    """Compare runs with the same items by AVG, TOP-k and RPSR; the result is empty with fewer than two runs.

    k is the number of attempts at each item, or the smallest such number if the runs differ. A figure is
    compared on the items for which every run defines it, and left out if there are none.
    """
    if len(runs) < 2:
        return {}
    ids = {name: {attempt.item for attempt in attempts} for name, attempts in runs.items()}
    first = next(iter(ids))
    for name, found in ids.items():
        if found != ids[first]:
            raise InputError(f"runs {first!r} and {name!r} have different items; they cannot be compared")
    # A TOP-k is comparable only for the same k, which every run must have.
    most = min(max(attempt.attempt for attempt in attempts) for attempts in runs.values())
    by_figure: dict[str, Figure] = {"AVG": lambda each: average_pass_rate([_passed(each)])}
    # TOP-1 equals AVG.
    if most > 1:
        by_figure[f"TOP-{most}"] = lambda each: _top(each, most)
    by_figure["RPSR"] = _mean_ratio
    items = {name: finished_by_item(attempts) for name, attempts in runs.items()}
    comparisons = {}
    for name, figure in by_figure.items():
        values = {
            run: {id_: value for id_, each in found.items() if (value := figure(each)) is not None}
            for run, found in items.items()
        }
        common = [id_ for id_ in items[first] if all(id_ in found for found in values.values())]
        if common:
            scores = {run: np.array([found[id_] for id_ in common]) for run, found in values.items()}
            comparisons[name] = compare_scores(scores, name)
    return comparisons


def _passed(each: Attempts) -> list[bool]:
    return [attempt.accepted for attempt in each]


def _top(each: Attempts, k: int) -> float | None:
    return pass_at_k([_passed(each)], k) if len(each) >= k else None


def _mean_ratio(each: Attempts) -> float | None:
    """Return the mean RPSR of the accepted attempts at one item; None if none has an RPSR."""
    ratios = [ratio for one in each if one.accepted and (ratio := patch_ratio(one)) is not None]
    return sum(ratios) / len(ratios) if ratios else None
