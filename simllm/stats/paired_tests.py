"""Paired tests of scores on the same items: bootstrap, sign flips, Holm's correction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
SEED = 12345
_RESAMPLES = 10_000
_MOST_EXACT = 13  # items whose 2^n swaps are at most as many as the resamples
_AT_ONCE = 10_000_000  # numbers held in memory


def resampled_means(values: Values, random: np.random.Generator) -> Values:
    """Draw the items with replacement, 10,000 times: (s, n) scores -> (10000, s) means."""
    n = values.shape[1]
    means = np.empty((_RESAMPLES, len(values)))
    for rows in _batches(n):  # each resample is the number of times that it holds each item
        counts = random.multinomial(n, np.full(n, 1 / n), size=len(rows))
        means[rows] = counts @ values.T / n
    return means


def holm(p_values: Sequence[float] | Values) -> list[float]:
    """Correct p-values for their number (Holm, "A simple sequentially rejective procedure", 1979)."""
    corrected, least = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(np.argsort(p_values, kind="stable")):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[i]))
        corrected[i] = least
    return corrected


def swaps(n: int, random: np.random.Generator) -> Iterator[Values]:
    """Yield, in batches, rows of n ones and zeros: which items to swap.

    These are all 2^n rows for at most 13 items, else 10,000 random ones.
    """
    if n <= _MOST_EXACT:
        yield (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(np.float64)
        return
    for rows in _batches(n):
        yield random.integers(0, 2, (len(rows), n), np.int8).astype(np.float64)


def permutation_p(extreme: Values, n: int) -> Values:
    """Turn the number of `swaps` of n items at least as extreme as the data into p-values.

    Of all swaps, one is the data. Beside random swaps the data count as one more.
    """
    return extreme / 2**n if n <= _MOST_EXACT else (extreme + 1) / (_RESAMPLES + 1)


def _batches(n: int) -> Iterator[range]:
    """Split the resamples of n items into batches of bounded memory."""
    size = max(1, min(500, _AT_ONCE // n))
    return (range(start, min(start + size, _RESAMPLES)) for start in range(0, _RESAMPLES, size))


def interval(values: Values) -> tuple[float, float]:
    """Return the 2.5% and 97.5% quantiles of resampled means."""
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def bootstrap_p(differences: Values, n: int) -> float:
    """Two-sided p-value of a bootstrap of n items: twice the rarer side of zero, counting the data.

    It is not below that of a sign test whose n items all agree. The resamples of few items cannot
    reverse a difference that has the same sign in all of them, however often one draws.
    """
    rarer = min((differences <= 0).sum(), (differences >= 0).sum())
    return min(1.0, max(2 * float(rarer + 1) / (len(differences) + 1), 2.0 ** (1 - n)))


def sign_flip_p(differences: Values, random: np.random.Generator) -> float:
    """Two-sided p-value of a sign-flip test of (n,) differences."""
    total = differences.sum()
    least = abs(total) - 1e-12 * np.abs(differences).sum()
    extreme = sum(
        (np.abs(total - 2 * swapped @ differences) >= least).sum()
        for swapped in swaps(len(differences), random)
    )
    return float(permutation_p(np.array(extreme), len(differences)))
