"""Paired tests of scores on the same items: bootstrap, sign flip test, Holm's correction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
SEED = 12345
_RESAMPLES = 10_000
_MOST_EXACT = 13  # largest number of items n for which all 2^n swaps are tried
_AT_ONCE = 10_000_000  # numbers that are in memory at once


def resampled_means(values: Values, random: np.random.Generator) -> Values:
    """Return the (10000, s) means of bootstrap resamples of n items, for (s, n) scores of s systems."""
    n = values.shape[1]
    means = np.empty((_RESAMPLES, len(values)))
    for rows in _batches(n):  # a resample is represented by the count of each item
        counts = random.multinomial(n, np.full(n, 1 / n), size=len(rows))
        means[rows] = counts @ values.T / n
    return means


def holm(p_values: Sequence[float] | Values) -> list[float]:
    """Correct p-values for multiple tests (Holm, "A simple sequentially rejective procedure", 1979)."""
    corrected, least = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(np.argsort(p_values, kind="stable")):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[i]))
        corrected[i] = least
    return corrected


def swaps(n: int, random: np.random.Generator) -> Iterator[Values]:
    """Yield batches of rows with n zeros and ones; an item is swapped if it has a one.

    For at most 13 items the rows are all 2^n possible ones, for more items 10,000 random ones.
    """
    if n <= _MOST_EXACT:
        yield (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(np.float64)
        return
    for rows in _batches(n):
        yield random.integers(0, 2, (len(rows), n), np.int8).astype(np.float64)


def permutation_p(extreme: Values, n: int) -> Values:
    """Return p-values from the numbers of `swaps` of n items that are at least as extreme as the data.

    All possible swaps include the data. To random swaps the data are added as one more.
    """
    return extreme / 2**n if n <= _MOST_EXACT else (extreme + 1) / (_RESAMPLES + 1)


def _batches(n: int) -> Iterator[range]:
    """Yield ranges of resample numbers, so small that a (len(range), n) array fits in memory."""
    size = max(1, min(500, _AT_ONCE // n))
    return (range(start, min(start + size, _RESAMPLES)) for start in range(0, _RESAMPLES, size))


def interval(values: Values) -> tuple[float, float]:
    """Return the 2.5% and 97.5% quantiles of resampled means."""
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def bootstrap_p(differences: Values, n: int) -> float:
    """Return the two-sided p-value of a bootstrap test.

    It is twice the share of resamples on the rarer side of zero; the data count as one more. It is at
    least 2^(1-n), the p-value of a sign test in which all n items agree, because resamples of few
    items with the same sign can never reverse the difference.

    Args:
        differences: The difference of means in each resample.
        n: Number of items.
    """
    rarer = min((differences <= 0).sum(), (differences >= 0).sum())
    return min(1.0, max(2 * float(rarer + 1) / (len(differences) + 1), 2.0 ** (1 - n)))


def sign_flip_p(differences: Values, random: np.random.Generator) -> float:
    """Return the two-sided p-value of a sign flip test of (n,) differences."""
    total = differences.sum()
    least = abs(total) - 1e-12 * np.abs(differences).sum()
    extreme = sum(
        (np.abs(total - 2 * swapped @ differences) >= least).sum()
        for swapped in swaps(len(differences), random)
    )
    return float(permutation_p(np.array(extreme), len(differences)))
