"""Spearman's rank correlation with ratings, its p-value and its bootstrap interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
    interval = stats.bootstrap(
        (scores, ratings), _rho, paired=True, vectorized=True, n_resamples=_RESAMPLES,
        confidence_level=_CONFIDENCE, method="percentile", batch=100, rng=np.random.default_rng(_SEED),
    ).confidence_interval  # fmt: skip
    return Correlation(float(result.statistic), float(result.pvalue), float(interval.low), float(interval.high))


def _rho(a: NDArray[np.float64], b: NDArray[np.float64], axis: int = -1) -> Any:
    ranks = [stats.rankdata(values, axis=axis) for values in (a, b)]
    centred = [r - r.mean(axis=axis, keepdims=True) for r in ranks]
    covariance = (centred[0] * centred[1]).sum(axis=axis)
    return covariance / np.sqrt((centred[0] ** 2).sum(axis=axis) * (centred[1] ** 2).sum(axis=axis))
