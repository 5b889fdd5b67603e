"""Bootstrap intervals, and bootstrap and permutation tests of two systems' scores for the same items.

By hand, because all tests of a study share resamples, seeds are fixed, and few items are tested exactly.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from simllm.array_types import Floats
from simllm.stats.significance import Outcome

SEED = 12345
# All n values lie on one side of their median with probability 2^(1-n). Resamples stay between the smallest
# and the largest value, so that with fewer than 6 items no interval of resamples can hold in 95% of studies.
LEAST_ITEMS = 6
_RESAMPLES = 10_000
_MOST_EXACT = 13  # largest number of items n for which all 2^n swaps are tried
_AT_ONCE = 10_000_000  # numbers that are in memory at once


def resampled_means(values: Floats, random: np.random.Generator) -> Floats:
    """Compute the (10000, s) mean scores in resamples of (n) items, from (s, n) scores of s systems."""
    n = values.shape[1]
    means = np.empty((_RESAMPLES, len(values)))
    for rows in _batches(n):  # a resample is represented by the count of each item
        counts = random.multinomial(n, np.full(n, 1 / n), size=len(rows))
        means[rows] = counts @ values.T / n
    return means


def swaps(n: int, random: np.random.Generator) -> Iterator[Floats]:
    """Yield the swaps of a permutation test: sets of the n items for which two systems exchange their values.

    Each array is (k, n), a set in each row: 1 for an item that is swapped. For up to 13 items, all 2^n sets
    come in one array; otherwise 10,000 random sets come in several arrays.
    """
    if n <= _MOST_EXACT:
        yield (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(np.float64)
        return
    for rows in _batches(n):
        yield random.integers(0, 2, (len(rows), n), np.int8).astype(np.float64)


def permutation_p(extreme: Floats, n: int) -> Floats:
    """Compute (m,) p-values from (m,) counts of the swaps that differ at least as much as the data."""
    # All 2^n sets include the one without a swap. To random sets, the original data are added as one more.
    return extreme / 2**n if n <= _MOST_EXACT else (extreme + 1) / (_RESAMPLES + 1)


def _batches(n: int) -> Iterator[range]:
    """Divide 10,000 resamples into ranges of up to 500, so that (k, n) arrays fit into memory."""
    size = max(1, min(500, _AT_ONCE // n))
    return (range(start, min(start + size, _RESAMPLES)) for start in range(0, _RESAMPLES, size))


def interval(values: Floats, items: int) -> tuple[float, float]:
    """Return the 2.5% and 97.5% quantiles of (R,) values of a statistic in R bootstrap resamples.

    Resamples in which the statistic is NaN are left out. Both ends are NaN for fewer than `LEAST_ITEMS`
    resampled items, without spread, or if all values are NaN.
    """
    if items < LEAST_ITEMS:
        return math.nan, math.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # all values are NaN
        low, high = np.nanquantile(values, [0.025, 0.975])
    return (float(low), float(high)) if high - low > 1e-12 else (math.nan, math.nan)


def least_p(items: int) -> float:
    """Return the smallest p that a paired test can have: that of a sign test if one system wins all items."""
    return min(1.0, 2.0 ** (1 - items))


def bootstrap_p(differences: Floats, n: int) -> float:
    """Compute p of "two systems have the same mean score" from the (R,) differences of R bootstrap resamples.

    p = 2 (k + 1) / (R + 1), but at most 1; k counts the differences <= 0 or those >= 0, whichever are fewer.
    """
    if np.isnan(differences).any():
        return math.nan
    rarer = min((differences <= 0).sum(), (differences >= 0).sum())
    return min(1.0, max(2 * float(rarer + 1) / (len(differences) + 1), least_p(n)))  # too small for few items


def sign_flip_p(differences: Floats, random: np.random.Generator) -> float:
    """Compute p of "(n,) paired differences are symmetric around 0" by changing the signs of some of them.

    p is the share of the sums that are at least as far from 0 as the original sum (see `swaps`).
    """
    if np.isnan(differences).any():
        return math.nan
    total = differences.sum()
    # Sums in another order differ by rounding, and must count as equal.
    least = abs(total) - 1e-12 * np.abs(differences).sum()
    extreme = sum(
        (np.abs(total - 2 * swapped @ differences) >= least).sum()
        for swapped in swaps(len(differences), random)
    )
    return float(permutation_p(np.array(extreme), len(differences)))


def paired_permutation(differences: Floats) -> Outcome:
    """Test by sign flips whether (n,) paired differences are symmetric around 0; the statistic is their mean.

    For example, two classifiers that are right on an item in 4 and 3 of 5 runs differ by 0.2.
    """
    p = sign_flip_p(differences, np.random.default_rng(SEED))
    return Outcome("paired-permutation", float(differences.mean()), p)


class PairedMean(NamedTuple):
    """The mean of paired differences, the ends of its 95% bootstrap interval, and the p of sign flips."""

    mean: float
    low: float
    high: float
    p: float


def paired_mean(differences: Floats) -> PairedMean:
    """Compute the mean of (n,) paired differences, and test whether they are symmetric around 0."""
    low = high = math.nan
    if len(differences) >= LEAST_ITEMS and np.ptp(differences) > 0:  # otherwise, there is no interval
        drawn = resampled_means(differences[None], np.random.default_rng(SEED))
        low, high = interval(drawn[:, 0], len(differences))
    p = sign_flip_p(differences, np.random.default_rng(SEED))
    return PairedMean(float(differences.mean()), low, high, p)
