"""Spearman's rank correlation with ratings, its p-value and its bootstrap interval."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

_RESAMPLES, _CONFIDENCE, _SEED = 2000, 0.95, 12345


@dataclass(frozen=True)
class Correlation:
    """Spearman's rho of n pairs, its two-sided p-value and 95% percentile interval."""

    rho: float
    p_value: float
    low: float
    high: float


def spearman(scores: NDArray[np.float64], ratings: NDArray[np.float64]) -> Correlation:
    """Correlate (n,) scores with (n,) ratings; the interval resamples the pairs 2,000 times.

    NaN throughout where either side is constant: a rank correlation is undefined then.
    """
    if np.ptp(scores) == 0 or np.ptp(ratings) == 0:
        return Correlation(*[float("nan")] * 4)
    result = stats.spearmanr(scores, ratings)
    random = np.random.default_rng(_SEED)
    resampled = [_rho(scores[rows], ratings[rows]) for rows in _resamples(len(scores), random)]
    low, high = np.nanquantile(resampled, [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2])
    return Correlation(float(result.statistic), float(result.pvalue), float(low), float(high))


def _resamples(n: int, random: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Yield (100, n) indices drawn with replacement, until there are `_RESAMPLES` rows."""
    for _ in range(_RESAMPLES // 100):
        yield random.integers(n, size=(100, n))


def _rho(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """(k, n), (k, n) -> (k,) rank correlations."""
    ranks = [stats.rankdata(values, axis=1) for values in (a, b)]
    centred = [r - r.mean(axis=1, keepdims=True) for r in ranks]
    covariance = (centred[0] * centred[1]).sum(axis=1)
    scale = np.sqrt((centred[0] ** 2).sum(axis=1) * (centred[1] ** 2).sum(axis=1))
    # A resample of a small set may be constant, and is left out of the interval.
    return np.divide(covariance, scale, out=np.full_like(scale, np.nan), where=scale > 0)
