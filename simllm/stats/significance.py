"""Tests whether one metric agrees better with people than another, on the same items."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from simllm.stats import paired_tests

LEVEL = 0.05
_SEED = 12345

Floats = NDArray[np.float64]


def williams(r12: float, r13: float, r23: float, n: int) -> float:
    """Compute the two-sided p-value of Williams' test that two correlations with one variable are equal.

    See Williams, "The comparison of regression variables", 1959; equation 4 in Steiger, "Tests for
    comparing elements of a correlation matrix", 1980, where the statistic is T2. The test assumes
    normal data; for few items, or a correlation of 1, its p-value is too small. So it is never below
    2^(1-n), the least p-value of a test that swaps the metrics item by item.

    Args:
        r12: correlation of variable 1 (the ratings) with variable 2 (a metric).
        r13: correlation of variable 1 with variable 3 (another metric).
        r23: correlation of the two metrics.
        n: number of items.

    Returns:
        The p-value; 1 where both metrics are the same, or for three items. NaN where each metric is
        the reverse of the other, as the statistic is undefined.
    """
    if r23 >= 1 - 1e-12 or n <= 3:
        return 1.0
    if r23 <= -1 + 1e-12:
        return float("nan")
    determinant = max(0.0, 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23)
    scale = 2 * determinant * (n - 1) / (n - 3) + ((r12 + r13) / 2) ** 2 * (1 - r23) ** 3
    t = (r12 - r13) * np.sqrt((n - 1) * (1 + r23) / max(scale, 1e-300))
    return max(float(2 * stats.t.sf(abs(t), n - 3)), 2.0 ** (1 - n), sys.float_info.min)


def permutation(scores: Sequence[Floats], ratings: Floats) -> Floats:
    """Test whether two metrics' rank correlations with the ratings are equal, for all pairs of m metrics.

    The scores, (n,) each, are put on one scale by their ranks. Under the hypothesis it does not
    matter which metric gave an item which of its two ranks. So the two ranks are swapped, item by
    item: in all ways if there are at most 10,000, else in 10,000 random ways (Deutsch, Dror and Roth,
    "A statistical analysis of summarization evaluation metrics using resampling methods", 2021).

    Returns:
        (m, m) two-sided p-values.
    """
    ranks = _centred(np.stack([stats.rankdata(values) for values in scores]))
    rated = _centred(stats.rankdata(ratings))
    m, n = ranks.shape
    first, second = np.triu_indices(m, 1)
    # Of each metric's ranks: their squares, and their products with the ratings.
    squares, products = ranks**2, ranks * rated
    of_a, of_b = ((squares[pair].sum(axis=1), products[pair].sum(axis=1)) for pair in (first, second))
    zero = np.zeros(len(first))
    observed = np.abs(_correlation(zero, *of_a, rated) - _correlation(zero, *of_b, rated))
    extreme = np.zeros(len(first), int)
    for swapped in paired_tests.swaps(n, np.random.default_rng(_SEED)):
        # What metric a gains and b loses by the swaps: in sum, in sum of squares, in product.
        moved = [swapped @ of_metric.T for of_metric in (ranks, squares, products)]
        total, square, product = (of_metric[:, second] - of_metric[:, first] for of_metric in moved)
        after_a = _correlation(total, of_a[0] + square, of_a[1] + product, rated)
        after_b = _correlation(-total, of_b[0] - square, of_b[1] - product, rated)
        extreme += (np.abs(after_a - after_b) >= observed - 1e-9).sum(axis=0)
    p = np.ones((m, m))
    p[first, second] = p[second, first] = paired_tests.permutation_p(extreme, n)
    return p


def holm(p: Floats) -> Floats:
    """Correct (m, m) p-values of pairs of metrics for the number of pairs."""
    pairs = np.triu_indices(len(p), 1)
    corrected = np.ones_like(p)
    corrected[pairs] = paired_tests.holm(p[pairs])
    return np.minimum(corrected, corrected.T)


def clusters(rho: Sequence[float], p: Floats) -> list[int]:
    """Rank m metrics, 1 the best; metrics share a rank if (m, m) `p` does not tell them apart at 0.05.

    From the best metric on, a metric opens a new cluster if it is significantly worse than any metric
    in the last one, as WMT ranks metrics (Freitag et al., "Results of WMT23 metrics shared task", 2023).
    A metric without a correlation (NaN) comes last.
    """
    ranks, members, first = [0] * len(rho), list[int](), 1
    for place, i in enumerate(np.argsort([-r for r in rho], kind="stable").tolist(), 1):
        if any(p[i, j] < LEVEL for j in members):
            members, first = [], place
        members.append(i)
        ranks[i] = first
    return ranks


def _centred(values: Floats) -> Floats:
    return np.asarray(values - values.mean(axis=-1, keepdims=True), float)


def _correlation(total: Floats, squares: Floats, products: Floats, rated: Floats) -> Floats:
    """Compute Pearson's r with centred ratings from a sum, a sum of squares and a sum of products.

    0 where all values are equal, as swaps of few items can make them.
    """
    scale = np.sqrt(np.maximum(squares - total**2 / len(rated), 0) * (rated @ rated))
    return np.divide(products, scale, out=np.zeros_like(products), where=scale > 1e-9)
