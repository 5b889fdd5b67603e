"""Significance tests of whether two metrics correlate equally well with ratings of the same items."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from scipy import stats

from simllm.array_types import Floats
from simllm.stats import paired_bootstrap_and_permutation

LEVEL = 0.05
_SEED = 12345


def williams(r12: float, r13: float, r23: float, n: int) -> float:
    """Test whether two metrics have the same correlation with ratings (Williams' test).

    See Williams, "The comparison of regression variables", 1959, and T2 in equation 4 of Steiger,
    "Tests for comparing elements of a correlation matrix", 1980. The test assumes normal data. Its p-value
    is too small for few items, or for a correlation of 1. Therefore the p-value is raised to at least
    2^(1-n), the smallest p-value that a permutation test on n items can have.

    Args:
        r12: Correlation of the ratings (variable 1) with the first metric (variable 2).
        r13: Correlation of the ratings (variable 1) with the second metric (variable 3).
        r23: Correlation of the two metrics.
        n: Number of items.

    Returns:
        The two-sided p-value. It is 1 for equal metrics and for at most three items. It is NaN if the
        metrics are exact opposites (r23 = -1), because the test statistic is undefined.
    """
    if r23 >= 1 - 1e-12 or n <= 3:
        return 1.0
    if r23 <= -1 + 1e-12:
        return float("nan")
    determinant = max(0.0, 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23)
    scale = 2 * determinant * (n - 1) / (n - 3) + ((r12 + r13) / 2) ** 2 * (1 - r23) ** 3
    t = (r12 - r13) * np.sqrt((n - 1) * (1 + r23) / max(scale, 1e-300))
    return max(float(2 * stats.t.sf(abs(t), n - 3)), 2.0 ** (1 - n), sys.float_info.min)


def permutation_p_values(scores: Sequence[Floats], ratings: Floats) -> Floats:
    """Test for each pair of metrics whether both have the same rank correlation with the ratings.

    The scores of each metric are replaced by their ranks. The permutation test chooses a set of items, and
    swaps the ranks that the two metrics gave to these items. If both metrics are equally good, such a swap
    should not matter. The test tries all possible sets if n is at most 13, otherwise 10,000 random sets. The
    p-value is the share of sets for which the two correlations differ at least as much after the swap as
    before it (Deutsch, Dror and Roth, "A statistical analysis of summarization evaluation metrics using
    resampling methods", 2021).

    Args:
        scores: For each of m metrics, (n,) scores of n items.
        ratings: (n,) ratings of the items.

    Returns:
        (m, m) two-sided p-values: entry (i, j) compares the metrics i and j. They are not corrected for
        multiple tests. The diagonal is 1. The p-values of a metric with a NaN are NaN.
    """
    ranks = _centred(np.stack([stats.rankdata(values) for values in scores]))
    rated = _centred(stats.rankdata(ratings))
    m, n = ranks.shape
    first, second = np.triu_indices(m, 1)
    # The squares of the ranks, and their products with the ratings.
    squares, products = ranks**2, ranks * rated
    of_a, of_b = ((squares[pair].sum(axis=1), products[pair].sum(axis=1)) for pair in (first, second))
    zero = np.zeros(len(first))
    observed = np.abs(_correlation(zero, *of_a, rated) - _correlation(zero, *of_b, rated))
    extreme = np.zeros(len(first), int)
    for swapped in paired_bootstrap_and_permutation.swaps(n, np.random.default_rng(_SEED)):
        # The swaps add these values to the sums of metric a, and subtract them from those of b.
        moved = [swapped @ of_metric.T for of_metric in (ranks, squares, products)]
        total, square, product = (of_metric[:, second] - of_metric[:, first] for of_metric in moved)
        after_a = _correlation(total, of_a[0] + square, of_a[1] + product, rated)
        after_b = _correlation(-total, of_b[0] - square, of_b[1] - product, rated)
        extreme += (np.abs(after_a - after_b) >= observed - 1e-9).sum(axis=0)
    p = np.ones((m, m))
    found = paired_bootstrap_and_permutation.permutation_p(extreme, n)
    p[first, second] = p[second, first] = np.where(np.isnan(observed), np.nan, found)
    return p


def clusters(rho: Sequence[float], p: Floats) -> list[int]:
    """Rank m metrics by correlation with ratings; metrics without a significant difference share a rank.

    The metrics are visited from the highest correlation to the lowest; NaN comes last. The first metric
    begins a cluster, and the next metrics join it. A metric that differs significantly (p < 0.05) from a
    metric in the current cluster begins a new cluster. The WMT shared tasks use the same method (Freitag et
    al., "Results of WMT23 metrics shared task", 2023).

    Args:
        rho: (m,) correlation of each metric with the ratings.
        p: (m, m) p-values: entry (i, j) compares metric i with metric j.

    Returns:
        (m,) rank of each metric: 1 plus the number of metrics in better clusters. For example, if two metrics
        share the first cluster, the ranks are 1, 1, 3.
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
    """Compute Pearson's r between values x of a metric and ratings y of n items, from sums over the items.

    r = sum(xy) / sqrt((sum(x²) - sum(x)² / n) sum(y²)); it is 0 if all x are equal. The sums may be arrays
    of one shape, to compute many correlations at once.

    Args:
        total: sum(x).
        squares: sum(x²).
        products: sum(xy).
        rated: (n,) ratings y, shifted so that their mean is 0.
    """
    scale = np.sqrt(np.maximum(squares - total**2 / len(rated), 0) * (rated @ rated))
    return np.divide(products, scale, out=np.zeros_like(products), where=scale > 1e-9)
