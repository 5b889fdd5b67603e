"""Bootstrap and permutation tests, which compare two systems by their scores for the same items."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from simllm.array_types import Floats
from simllm.stats.significance_outcome import Outcome

SEED = 12345
# All n values lie on one side of their median with probability 2^(1-n). Resamples stay between the smallest
# and the largest value, so that with fewer than 6 items no interval of resamples can hold in 95% of studies.
LEAST_ITEMS = 6
_RESAMPLES = 10_000
_MOST_EXACT = 13  # largest number of items n for which all 2^n swaps are tried
_AT_ONCE = 10_000_000  # numbers that are in memory at once


def resampled_means(values: Floats, random: np.random.Generator) -> Floats:
    """Compute the mean score of each system in 10,000 bootstrap resamples of n items.

    Args:
        values: (s, n) scores of s systems for n items.
        random: The random generator.

    Returns:
        (10000, s) mean scores: one row for each resample.
    """
    n = values.shape[1]
    means = np.empty((_RESAMPLES, len(values)))
    for rows in _batches(n):  # a resample is represented by the count of each item
        counts = random.multinomial(n, np.full(n, 1 / n), size=len(rows))
        means[rows] = counts @ values.T / n
    return means


def swaps(n: int, random: np.random.Generator) -> Iterator[Floats]:
    """Choose the swaps of a permutation test, which compares the values of two systems for the same n items.

    A swap is a set of items; the test exchanges the values of the two systems for these items. For at most 13
    items, all 2^n sets are chosen; otherwise 10,000 random sets.

    Args:
        n: Number of items.
        random: The random generator.

    Yields:
        Arrays of shape (k, n). Each row is one set: 1 for an item that is swapped, 0 for an item that is not.
        To save memory, the 10,000 random sets are divided over several arrays.
    """
    if n <= _MOST_EXACT:
        yield (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(np.float64)
        return
    for rows in _batches(n):
        yield random.integers(0, 2, (len(rows), n), np.int8).astype(np.float64)


def permutation_p(extreme: Floats, n: int) -> Floats:
    """Compute the two-sided p-values of permutation tests, which compare two systems on the same n items.

    A test swaps the values of the two systems for a set of items, and computes the difference between the
    systems again. It counts the sets for which the absolute difference is at least as large as before.

    For at most 13 items, the test tries all 2^n sets, and p = count / 2^n. For more items, it tries 10,000
    random sets. The original data then count as one more set, so p = (count + 1) / 10,001.

    Args:
        extreme: (m,) counts, one for each test.
        n: Number of items.

    Returns:
        (m,) p-values.
    """
    return extreme / 2**n if n <= _MOST_EXACT else (extreme + 1) / (_RESAMPLES + 1)


def _batches(n: int) -> Iterator[range]:
    """Divide the 10,000 resamples into batches, so that the arrays for one batch fit into memory.

    The resamples are numbered from 0 to 9,999. A batch is a range of these numbers.

    Args:
        n: Number of items in a resample. The arrays for a batch of k resamples have the shape (k, n).

    Returns:
        The batches: range(0, 500), range(500, 1000), and so on. If n is more than 20,000, a batch has fewer
        than 500 resamples.
    """
    size = max(1, min(500, _AT_ONCE // n))
    return (range(start, min(start + size, _RESAMPLES)) for start in range(0, _RESAMPLES, size))


def interval(values: Floats, items: int) -> tuple[float, float]:
    """Return a 95% bootstrap interval: the 2.5% and 97.5% quantiles of the resampled values.

    Args:
        values: (R,) value of a statistic, such as the mean, in each of R bootstrap resamples.
        items: The number of items that were resampled. Both ends are NaN if the interval would look too
            certain: fewer than `LEAST_ITEMS` items, or no spread between the resamples.
    """
    low, high = np.quantile(values, [0.025, 0.975])
    if items < LEAST_ITEMS or high - low < 1e-12:
        return math.nan, math.nan
    return float(low), float(high)


def bootstrap_p(differences: Floats, n: int) -> float:
    """Compute the two-sided p-value for the hypothesis that two systems have the same mean score.

    p = 2 (k + 1) / (R + 1), but at most 1. R is the number of bootstrap resamples. k is the number of
    differences <= 0 or the number of differences >= 0, whichever is smaller. For few items, this p can be too
    small. Therefore p is at least 2^(1-n), the p-value of a sign test if one system is better on all n items.

    Args:
        differences: (R,) difference between the two mean scores in each resample. If one is NaN, so is p.
        n: Number of items.
    """
    if np.isnan(differences).any():
        return math.nan
    rarer = min((differences <= 0).sum(), (differences >= 0).sum())
    return min(1.0, max(2 * float(rarer + 1) / (len(differences) + 1), 2.0 ** (1 - n)))


def sign_flip_p(differences: Floats, random: np.random.Generator) -> float:
    """Compute the two-sided p-value for the hypothesis that paired differences are symmetric around 0.

    The sign flip test changes the signs of some differences, and sums all differences again. The p-value is
    the share of such sums that are at least as far from 0 as the original sum. For at most 13 items, all 2^n
    choices of signs are tried; otherwise 10,000 random choices.

    Args:
        differences: (n,) differences between the scores of two systems, one for each item. If one is NaN, so
            is the p-value.
        random: The random generator.
    """
    if np.isnan(differences).any():
        return math.nan
    total = differences.sum()
    least = abs(total) - 1e-12 * np.abs(differences).sum()
    extreme = sum(
        (np.abs(total - 2 * swapped @ differences) >= least).sum()
        for swapped in swaps(len(differences), random)
    )
    return float(permutation_p(np.array(extreme), len(differences)))


def paired_permutation(differences: Floats) -> Outcome:
    """Test whether paired differences are symmetric around 0, by a permutation test that flips signs.

    Args:
        differences: (n,) differences, one for each item. For example, if one classifier is right on an item
            in 4 of 5 runs and another classifier in 3 of 5 runs, the difference is 0.2.

    Returns:
        The outcome; its test statistic is the mean difference.
    """
    p = sign_flip_p(differences, np.random.default_rng(SEED))
    return Outcome("paired-permutation", float(differences.mean()), p)
