"""95% bootstrap intervals of pass rates and patch sizes, from resamples of the items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from simllm.repair.attempt_results import AttemptsByItem
from simllm.repair.patch_sizes_of_attempts import patch_ratio
from simllm.stats.paired_bootstrap_and_permutation import SEED, interval, resampled_means
from simllm.stats.pass_at_k import average_pass_rate, pass_at_k


def compute_intervals(
    items: AttemptsByItem, passed: Mapping[str, Sequence[bool]], most_attempts: int
) -> dict[str, list[float] | None]:
    """Compute 95% bootstrap intervals of AVG, of TOP-k for k up to `most_attempts`, and of RPSR.

    `passed` has for each item whether each of its finished attempts was accepted. An interval is None if the
    value is not defined, or if the interval would look too certain (see `interval`).
    """
    sums: dict[str, list[tuple[float, int]]] = {  # for each item, a numerator and a denominator
        "AVG": [(average_pass_rate([each]), 1) for each in passed.values()]
    }
    for k in range(1, most_attempts + 1):
        sums[f"TOP-{k}"] = [
            (pass_at_k([each], k), 1) if len(each) >= k else (0, 0) for each in passed.values()
        ]
    ratios = [
        [ratio for one in each if one.accepted and (ratio := patch_ratio(one)) is not None]
        for each in items.values()
    ]
    sums["RPSR"] = [(sum(each), len(each)) for each in ratios]
    # One item has nothing to resample.
    if len(items) < 2:
        return dict.fromkeys(sums)
    values = np.array(list(sums.values()), np.float64)  # (figures, items, 2)
    # Numerators and denominators in one call, so that both come from the same resamples: a resample of "RPSR"
    # has another number of attempts each time.
    means = resampled_means(
        np.concatenate([values[:, :, 0], values[:, :, 1]]), np.random.default_rng(SEED)
    ).reshape(-1, 2, len(sums))
    counted = (values[:, :, 1] > 0).sum(axis=1)
    return {name: _interval(means[:, 0, i], means[:, 1, i], int(counted[i])) for i, name in enumerate(sums)}


def _interval(
    numerators: NDArray[np.float64], denominators: NDArray[np.float64], items: int
) -> list[float] | None:
    """Return the ends of the 95% interval of a quotient from its (resamples,) numerators and denominators.

    `items` is the number of items that have a value.
    """
    # A resample in which no item has a value says nothing about the mean of the values.
    some = denominators > 0
    ends = interval(numerators[some] / denominators[some], items) if some.any() else (np.nan, np.nan)
    return None if np.isnan(ends[0]) else list(ends)
