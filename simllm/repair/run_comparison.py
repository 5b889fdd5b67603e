"""Comparison of runs in which models repaired programs or summarized code, by tests with Holm's correction.

The tests are paired: all runs have the same programs to repair, or the same code to summarize.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from simllm.analysis.comparison import Comparison, compare_scores
from simllm.errors import InputError
from simllm.repair.attempt_results import AttemptResult, finished_by_item
from simllm.repair.patch_sizes_of_attempts import patch_ratio
from simllm.stats.pass_at_k import average_pass_rate, pass_at_k

Attempts = Sequence[AttemptResult]
Figure = Callable[[Attempts], float | None]  # takes the finished attempts at one item; None if undefined


def compare_runs(runs: Mapping[str, Attempts]) -> dict[str, Comparison]:
    """Compare runs of models on the same items (programs to repair, or code to summarize) by three measures.

    - AVG is the share of accepted attempts. An attempt to repair a program is accepted if the model's last
      program passes all tests. An attempt to summarize code is accepted if the model's last summary has a
      high enough score.
    - TOP-k is pass@k: the probability that at least one of k attempts is accepted. k is the number of
      attempts at each item, or the smallest such number if the runs differ.
    - RPSR (relative patch size ratio) is the size of the model's change to a program, divided by the size of
      the known correct change.

    Each measure is compared only on the items for which it is defined in every run. For example, RPSR is not
    defined for an item without an accepted attempt.

    Args:
        runs: The attempts of each run, by the name of the run.

    Returns:
        The comparison of the runs by each measure ("AVG", "TOP-5", "RPSR"). TOP-k is left out if k is 1,
        because it then equals AVG. A measure that is defined for no item is left out, too. With fewer than
        two runs, the dict is empty.

    Raises:
        InputError: The runs have different items.
    """
    if len(runs) < 2:
        return {}
    ids = {name: {attempt.item for attempt in attempts} for name, attempts in runs.items()}
    first = next(iter(ids))
    for name, found in ids.items():
        if found != ids[first]:
            raise InputError(f"runs {first!r} and {name!r} have different items; they cannot be compared")
    most = min(max(attempt.attempt for attempt in attempts) for attempts in runs.values())
    by_figure: dict[str, Figure] = {"AVG": lambda each: average_pass_rate([_passed(each)])}
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
    """Return the mean RPSR of a model's accepted attempts to repair one program.

    RPSR (relative patch size ratio) is the size of the model's change to the program, divided by the size of
    the known correct change.

    Args:
        each: The finished attempts to repair the program; only accepted ones are used.

    Returns:
        The mean; None if no accepted attempt has an RPSR, for example because no correct change is known.
    """
    ratios = [ratio for one in each if one.accepted and (ratio := patch_ratio(one)) is not None]
    return sum(ratios) / len(ratios) if ratios else None
