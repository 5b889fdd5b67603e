"""Does one metric agree better with people than another, on the same items?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from simllm.analysis import comparison

LEVEL = 0.05
_SWAPS, _SEED = 10_000, 12345
_AT_ONCE = 500  # rows of swaps held in memory

Floats = NDArray[np.float64]


def williams(r12: float, r13: float, r23: float, n: int) -> float:
    """Two-sided p-value of Williams' test that two correlations with one variable, 1, are equal.

    `r23` is the correlation of the two others (Williams, "The comparison of regression
    variables", 1959; equation 4 in Steiger, "Tests for comparing elements of a correlation
    matrix", 1980, where it is T2). 1 where the two are the same, or there are only three items.
    """
    if r23 >= 1 - 1e-12 or n <= 3:
        return 1.0
    determinant = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    scale = 2 * determinant * (n - 1) / (n - 3) + ((r12 + r13) / 2) ** 2 * (1 - r23) ** 3
    t = (r12 - r13) * np.sqrt((n - 1) * (1 + r23) / scale)
    return float(2 * stats.t.sf(abs(t), n - 3))


def permutation(scores: Sequence[Floats], ratings: Floats) -> Floats:
    """(m, m) two-sided p-values that two of m metrics' rank correlations with the ratings are equal.

    The scores, (n,) each, are put on one scale by their ranks. Under the hypothesis it does not
    matter which metric gave an item which of its two ranks, so these are swapped at random,
    item by item, 10,000 times (Deutsch, Dror and Roth, "A statistical analysis of
    summarization evaluation metrics using resampling methods", 2021).
    """
    ranks = _centred(np.stack([stats.rankdata(values) for values in scores]))
    rated = _centred(stats.rankdata(ratings))
    m, n = ranks.shape
    first, second = np.triu_indices(m, 1)
    a, b = ranks[first], ranks[second]
    size_a, size_b, with_a, with_b = (a**2).sum(axis=1), (b**2).sum(axis=1), a @ rated, b @ rated
    zero = np.zeros(len(a))
    observed = np.abs(_correlation(zero, size_a, with_a, rated) - _correlation(zero, size_b, with_b, rated))
    extreme, random = zero.copy(), np.random.default_rng(_SEED)
    for _ in range(_SWAPS // _AT_ONCE):
        swapped = random.integers(2, size=(_AT_ONCE, n)).astype(np.float64)
        # What a gains and b loses by the swaps: in sum, in sum of squares, in product with the ratings.
        total, squares, product = (swapped @ change.T for change in (b - a, b**2 - a**2, (b - a) * rated))
        of_a = _correlation(total, size_a + squares, with_a + product, rated)
        of_b = _correlation(total, size_b - squares, with_b - product, rated)
        extreme += (np.abs(of_a - of_b) >= observed - 1e-12).sum(axis=0)
    p = np.ones((m, m))
    p[first, second] = p[second, first] = (extreme + 1) / (_SWAPS + 1)
    return p


def holm(p: Floats) -> Floats:
    """(m, m) p-values of pairs, corrected for the number of pairs."""
    pairs = np.triu_indices(len(p), 1)
    corrected = np.ones_like(p)
    corrected[pairs] = comparison.holm(p[pairs])
    return np.minimum(corrected, corrected.T)


def clusters(rho: Sequence[float], p: Floats) -> list[int]:
    """(m,) ranks of m metrics, 1 the best, shared by those that cannot be told apart at (m, m) `p` < 0.05.

    From the best on, a metric opens a new cluster where it is significantly worse than any
    in the last one: so WMT ranks metrics (Freitag et al., "Results of WMT23 metrics shared task", 2023).
    """
    ranks, members, first = [0] * len(rho), list[int](), 1
    for place, i in enumerate(sorted(range(len(rho)), key=lambda i: -rho[i]), 1):
        if any(p[i, j] < LEVEL for j in members):
            members, first = [], place
        members.append(i)
        ranks[i] = first
    return ranks


def _centred(values: Floats) -> Floats:
    return np.asarray(values - values.mean(axis=-1, keepdims=True), float)


def _correlation(total: Floats, squares: Floats, product: Floats, rated: Floats) -> Floats:
    """Pearson's r with centred ratings, from the values' sum, sum of squares and product with these."""
    return np.asarray(product / np.sqrt((squares - total**2 / len(rated)) * (rated @ rated)))
