"""The 95% bootstrap intervals of a model's pass rates and patch sizes, from resamples of the items.

An item is an incorrect program that a model repairs, or code that a model summarizes. A repair counts as
passed if the program passes all tests, and a summary if its score is high enough. A patch is the model's
change to a program.
"""

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
    """Compute the 95% bootstrap intervals of a model's pass rates and patch sizes.

    An item is a program that the model repairs, or code that it summarizes. The bootstrap resamples the
    items. There is an interval for each of these numbers:

    - AVG is the share of accepted attempts. An attempt is accepted if the model's last program passes all
      tests, or if its last summary of code has a high enough score.
    - TOP-k is pass@k: the probability that at least one of k attempts is accepted.
    - RPSR (relative patch size ratio) is the mean, over accepted attempts, of (size of the model's change to
      the program) / (size of the known correct change).

    Args:
        items: The finished attempts at each item, by the id of the item.
        passed: For each item, whether each of its finished attempts was accepted.
        most_attempts: The largest k for which TOP-k is computed.

    Returns:
        The lower and the upper end of each interval, by name ("AVG", "TOP-1", ..., "RPSR"). An interval is
        None if the value is not defined, or if the interval would look too certain (see `interval`).
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
    if len(items) < 2:
        return dict.fromkeys(sums)
    values = np.array(list(sums.values()), np.float64)  # (figures, items, 2)
    means = resampled_means(
        np.concatenate([values[:, :, 0], values[:, :, 1]]), np.random.default_rng(SEED)
    ).reshape(-1, 2, len(sums))
    counted = (values[:, :, 1] > 0).sum(axis=1)
    return {name: _interval(means[:, 0, i], means[:, 1, i], int(counted[i])) for i, name in enumerate(sums)}


def _interval(
    numerators: NDArray[np.float64], denominators: NDArray[np.float64], items: int
) -> list[float] | None:
    """Return the 95% bootstrap interval of a statistic that is a quotient, such as a mean (sum / number).

    Args:
        numerators: (n,) numerator of the statistic in each of n resamples.
        denominators: (n,) denominator in each resample. Resamples with denominator 0 are left out.
        items: The number of items that have a value.

    Returns:
        The lower and the upper end; None without an interval.
    """
    some = denominators > 0
    ends = interval(numerators[some] / denominators[some], items) if some.any() else (np.nan, np.nan)
    return None if np.isnan(ends[0]) else list(ends)
