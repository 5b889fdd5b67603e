"""Agreement of scores with ratings: correlations, their intervals, pairwise accuracy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

_RESAMPLES, _CONFIDENCE, _SEED = 2000, 0.95, 12345
_MOST_PAIRS = 2_000_000  # of items, for the pairwise accuracy

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Correlation:
    """Spearman's rho of n pairs, its two-sided p-value and 95% percentile interval."""

    rho: float
    p_value: float
    low: float
    high: float


def spearman(scores: Floats, ratings: Floats) -> Correlation:
    """Correlate (n,) scores with (n,) ratings; the interval resamples the pairs 2,000 times.

    NaN throughout where either side is constant: a rank correlation is undefined then.
    """
    if np.ptp(scores) == 0 or np.ptp(ratings) == 0:
        return Correlation(*[float("nan")] * 4)
    result = stats.spearmanr(scores, ratings)
    random = np.random.default_rng(_SEED)
    resampled = [rank_correlations(scores[rows], ratings[rows]) for rows in _resamples(len(scores), random)]
    return Correlation(float(result.statistic), float(result.pvalue), *_interval(np.concatenate(resampled)))


def interval_by_rater(scores: Floats, raters: Floats) -> tuple[float, float]:
    """The 95% interval of Spearman's rho over other pairs and other raters: both are resampled.

    `raters` are (n, raters) ratings, NaN where there is none. What it adds to the interval over
    pairs is that other people might have been asked.
    """
    random = np.random.default_rng(_SEED)
    rated = ~np.isnan(raters)
    found = []
    for _ in range(_RESAMPLES // 4):  # each is ranked alone
        weights = np.bincount(
            random.integers(raters.shape[1], size=raters.shape[1]), minlength=raters.shape[1]
        )
        rows = random.integers(len(scores), size=len(scores))
        rows = rows[(rated[rows] @ weights) > 0]
        means = np.nan_to_num(raters[rows]) @ weights / (rated[rows] @ weights)
        found.append(rank_correlations(scores[None, rows], means[None])[0])
    return _interval(np.array(found))


def rank_correlations(a: Floats, b: Floats) -> Floats:
    """(k, n), (k, n) -> (k,) values of Spearman's rho; NaN where a side is constant."""
    ranks = [stats.rankdata(values, axis=1) for values in (a, b)]
    centred = [r - r.mean(axis=1, keepdims=True) for r in ranks]
    covariance = (centred[0] * centred[1]).sum(axis=1)
    scale = np.sqrt((centred[0] ** 2).sum(axis=1) * (centred[1] ** 2).sum(axis=1))
    return np.divide(covariance, scale, out=np.full_like(scale, np.nan), where=scale > 0)


def kendall(scores: Floats, ratings: Floats) -> float:
    """Kendall's tau-b."""
    return float(stats.kendalltau(scores, ratings).statistic)


def pearson(scores: Floats, ratings: Floats) -> float:
    """Pearson's r; NaN where either side is constant."""
    if np.ptp(scores) == 0 or np.ptp(ratings) == 0:
        return float("nan")
    return float(stats.pearsonr(scores, ratings).statistic)


def pairwise_accuracy(scores: Floats, ratings: Floats) -> float:
    """The share of pairs of items that scores and ratings put in the same order, ties among them.

    Scores that differ by no more than some epsilon count as tied; the best epsilon is taken, so that
    fine-grained scores are not punished for never being equal (Deutsch, Foster and Freitag, "Ties
    matter", 2023, acc*eq). Of more than two million pairs as many are drawn.
    """
    n = len(scores)
    if n * (n - 1) // 2 <= _MOST_PAIRS:
        a, b = np.triu_indices(n, 1)
    else:
        random = np.random.default_rng(_SEED)
        a = random.integers(n, size=_MOST_PAIRS)
        b = (a + random.integers(1, n, size=_MOST_PAIRS)) % n
    by_score, by_rating = scores[a] - scores[b], np.sign(ratings[a] - ratings[b])
    order = np.argsort(np.abs(by_score), kind="stable")
    size, tied = np.abs(by_score)[order], (by_rating == 0)[order]
    agree = ((np.sign(by_score) == by_rating) & (by_rating != 0))[order]
    # correct[k]: the k pairs of smallest difference count as tied; k may not part equal differences
    correct = np.concatenate([[0], np.cumsum(tied)]) + agree.sum() - np.concatenate([[0], np.cumsum(agree)])
    whole = np.concatenate([[True], np.diff(size) > 0, [True]])
    return float(correct[whole].max() / len(a))


def _interval(resampled: Floats) -> tuple[float, float]:
    # A resample of a small set may be constant, and is left out.
    low, high = np.nanquantile(resampled, [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2])
    return float(low), float(high)


def _resamples(n: int, random: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Yield (100, n) indices drawn with replacement, until there are `_RESAMPLES` rows."""
    for _ in range(_RESAMPLES // 100):
        yield random.integers(n, size=(100, n))
