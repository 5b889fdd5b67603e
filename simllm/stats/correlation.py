"""Agreement of metrics with ratings: correlations, tests of their differences, pairwise accuracy."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from simllm.array_types import Floats
from simllm.stats import resampling
from simllm.stats.resampling import LEAST_ITEMS

_SEED = 12345
_RESAMPLES = 2000
_AT_ONCE = 1_000_000  # numbers in a batch of resamples
_PERMUTATIONS = 9999
_MOST_EXACT = 8  # largest number of pairs for which all (at most 40,320) permutations are tried
LEVEL = 0.05
_MOST_PAIRS = 2_000_000  # largest number of pairs of items that are compared


@dataclass(frozen=True)
class Correlation:
    """Spearman's rho with the p-value for independence, and the bounds of its bootstrap interval."""

    rho: float
    p_value: float
    low: float
    high: float


def spearman(scores: Floats, ratings: Floats) -> Correlation:
    """Compute Spearman's rank correlation of (n,) scores and (n,) ratings.

    All results are NaN if the scores or the ratings are constant or have a NaN.
    """
    if np.ptp(scores) == 0 or np.ptp(ratings) == 0 or np.isnan([scores, ratings]).any():
        return Correlation(*[float("nan")] * 4)
    rho = float(rank_correlations(scores[None], ratings[None])[0])
    interval = bootstrap_interval(scores, ratings, np.random.default_rng(_SEED))
    return Correlation(rho, _p_value(scores, ratings), *interval)


def rank_correlations(a: Floats, b: Floats) -> Floats:
    """Compute k Spearman correlations, of each row of `a` and `b`, both (k, n); NaN for constant rows."""
    ranks = [stats.rankdata(values, axis=1) for values in (a, b)]
    centred = [r - r.mean(axis=1, keepdims=True) for r in ranks]
    covariance = (centred[0] * centred[1]).sum(axis=1)
    scale = np.sqrt((centred[0] ** 2).sum(axis=1) * (centred[1] ** 2).sum(axis=1))
    return np.clip(np.divide(covariance, scale, out=np.full_like(scale, np.nan), where=scale > 0), -1, 1)


def bootstrap_interval(scores: Floats, ratings: Floats, random: np.random.Generator) -> tuple[float, float]:
    """Compute the interval of Spearman's rho by 2,000 resamples of the items (see `resampling.interval`)."""
    if len(scores) < LEAST_ITEMS:
        return math.nan, math.nan
    batches = resamples(len(scores), _RESAMPLES, random)
    resampled = np.concatenate([rank_correlations(scores[rows], ratings[rows]) for rows in batches])
    return resampling.interval(resampled, len(scores))  # NaN for constant resamples of small sets


def resamples(n: int, count: int, random: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Draw `count` bootstrap resamples of n items, as (k, n) arrays of item numbers, k resamples in each."""
    size = max(1, min(100, _AT_ONCE // n))
    for start in range(0, count, size):
        yield random.integers(n, size=(min(size, count - start), n))


def _p_value(scores: Floats, ratings: Floats) -> float:
    """Compute the share of permutations whose rho is at least as far from 0 as the observed rho."""
    a, b = (_centred_ranks(values) for values in (scores, ratings))
    least = abs((a * b).sum()) * (1 - 1e-9)  # the sums are exact up to 100,000 pairs
    if len(a) <= _MOST_EXACT:
        sums = b[np.array(list(permutations(range(len(b)))))] @ a
        return float((np.abs(sums) >= least).mean())
    # The observed order counts as the 10,000th permutation, so that p is never 0 (Phipson and Smyth,
    # "Permutation p-values should never be zero", 2010). Ties need no correction: permuting keeps them.
    random = np.random.default_rng(_SEED)
    extreme = sum(abs((a * random.permutation(b)).sum()) >= least for _ in range(_PERMUTATIONS))
    return float((extreme + 1) / (_PERMUTATIONS + 1))


def _centred_ranks(values: Floats) -> Floats:
    """Replace (n,) values by their ranks, shifted to mean 0; equal values get the mean of their ranks."""
    return np.asarray(stats.rankdata(values) - (len(values) + 1) / 2, float)


def kendall(scores: Floats, ratings: Floats) -> float:
    """Compute Kendall's tau-b between (n,) scores and (n,) ratings; NaN if one of them is constant."""
    return float(stats.kendalltau(scores, ratings).statistic)


def pearson(scores: Floats, ratings: Floats) -> float:
    """Compute Pearson's r between (n,) scores and (n,) ratings; NaN if one of them is constant."""
    if np.ptp(scores) == 0 or np.ptp(ratings) == 0:
        return float("nan")
    return float(stats.pearsonr(scores, ratings).statistic)


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
    # The test assumes normal data, and its p is too small for few items or for a correlation of 1.
    return max(float(2 * stats.t.sf(abs(t), n - 3)), resampling.least_p(n), sys.float_info.min)


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
    for swapped in resampling.swaps(n, np.random.default_rng(_SEED)):
        # The swaps add these values to the sums of metric a, and subtract them from those of b.
        moved = [swapped @ of_metric.T for of_metric in (ranks, squares, products)]
        total, square, product = (of_metric[:, second] - of_metric[:, first] for of_metric in moved)
        after_a = _correlation(total, of_a[0] + square, of_a[1] + product, rated)
        after_b = _correlation(-total, of_b[0] - square, of_b[1] - product, rated)
        extreme += (np.abs(after_a - after_b) >= observed - 1e-9).sum(axis=0)
    p = np.ones((m, m))
    found = resampling.permutation_p(extreme, n)
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


def pairwise_accuracy(scores: Floats, ratings: Floats) -> float:
    """Compute the share of item pairs for which (n,) scores give the same order as (n,) ratings.

    Two items with equal ratings should have tied scores, and others should not. Scores are tied if they
    differ by at most the threshold that gives the highest accuracy (acc*eq in Deutsch, Foster and Freitag,
    "Ties matter", 2023). NaN with fewer than two items or with a NaN.
    """
    n = len(scores)
    if n < 2 or np.isnan([scores, ratings]).any():
        return float("nan")
    if n * (n - 1) // 2 <= _MOST_PAIRS:
        a, b = np.triu_indices(n, 1)
    else:
        random = np.random.default_rng(_SEED)
        # The offset is at least 1, so that no item is paired with itself.
        a = random.integers(n, size=_MOST_PAIRS)
        b = (a + random.integers(1, n, size=_MOST_PAIRS)) % n
    by_score, by_rating = scores[a] - scores[b], np.sign(ratings[a] - ratings[b])
    # Continuous scores are hardly ever equal, so each difference is tried as the threshold of a tie.
    order = np.argsort(np.abs(by_score), kind="stable")
    size, tied = np.abs(by_score)[order], (by_rating == 0)[order]
    agree = ((np.sign(by_score) == by_rating) & (by_rating != 0))[order]
    # correct[k]: correct pairs if the k smallest differences count as ties; equal differences stay together
    correct = np.concatenate([[0], np.cumsum(tied)]) + agree.sum() - np.concatenate([[0], np.cumsum(agree)])
    whole = np.concatenate([[True], np.diff(size) > 0, [True]])
    return float(correct[whole].max() / len(a))
