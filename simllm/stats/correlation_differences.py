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
    """Test whether two metrics have the same correlation with ratings (Williams' test); return p.

    `r12` and `r13` are the correlations of the ratings with the metrics, `r23` that between the metrics, and
    `n` counts the items. p is 1 for equal metrics and for up to three items. It is NaN for exact opposites,
    for which the statistic is undefined. See Williams, "The comparison of regression variables", 1959, and T2
    in equation 4 of Steiger, "Tests for comparing elements of a correlation matrix", 1980.
    """
    if r23 >= 1 - 1e-12 or n <= 3:
        return 1.0
    if r23 <= -1 + 1e-12:
        return float("nan")
    # The determinant of the correlation matrix, which rounding can push below 0.
    determinant = max(0.0, 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23)
    scale = 2 * determinant * (n - 1) / (n - 3) + ((r12 + r13) / 2) ** 2 * (1 - r23) ** 3
    t = (r12 - r13) * np.sqrt((n - 1) * (1 + r23) / max(scale, 1e-300))
    # The test assumes normal data, and its p is too small for few items or for a correlation of 1. No
    # permutation test on n items can have a p below 2^(1-n).
    return max(float(2 * stats.t.sf(abs(t), n - 3)), 2.0 ** (1 - n), sys.float_info.min)


def permutation_p_values(scores: Sequence[Floats], ratings: Floats) -> Floats:
    """Test for each pair of m metrics whether both have the same rank correlation with (n,) ratings.

    The test swaps the ranks that the two metrics gave to some of the items (see `swaps`); if both metrics
    are equally good, this should not matter (Deutsch, Dror and Roth, "A statistical analysis of summarization
    evaluation metrics using resampling methods", 2021). Returns (m, m) p-values, not corrected for multiple
    tests; 1 on the diagonal, NaN for a metric with a NaN.
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
    """Rank m metrics by their (m,) correlations; metrics without a significant difference share a rank.

    A metric begins a new cluster if it differs (p < 0.05) from a metric in the cluster above. Its rank is 1
    plus the number of metrics in better clusters, such as 1, 1, 3. The WMT shared tasks do the same (Freitag
    et al., "Results of WMT23 metrics shared task", 2023). `p` has the shape (m, m).
    """
    ranks, members, first = [0] * len(rho), list[int](), 1
    # `argsort` puts NaN last.
    for place, i in enumerate(np.argsort([-r for r in rho], kind="stable").tolist(), 1):
        if any(p[i, j] < LEVEL for j in members):
            members, first = [], place
        members.append(i)
        ranks[i] = first
    return ranks


def _centred(values: Floats) -> Floats:
    """Shift (..., n) values so that the mean of each row is 0."""
    return np.asarray(values - values.mean(axis=-1, keepdims=True), float)


def _correlation(total: Floats, squares: Floats, products: Floats, rated: Floats) -> Floats:
    """Compute Pearson's r between values x and centred (n,) ratings y; 0 if all x are equal.

    r = sum(xy) / sqrt((sum(x²) - sum(x)² / n) sum(y²)). The sums sum(x), sum(x²) and sum(xy) may be arrays of
    one shape, for many correlations at once.
    """
    scale = np.sqrt(np.maximum(squares - total**2 / len(rated), 0) * (rated @ rated))
    return np.divide(products, scale, out=np.zeros_like(products), where=scale > 1e-9)
