"""Correlation coefficients: Spearman's rho of many resamples at once, Kendall's tau, Pearson's r."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]


def rank_correlations(a: Floats, b: Floats) -> Floats:
    """Compute k Spearman correlations at once: each row of `a` with the same row of `b`.

    Args:
        a: (k, n) values.
        b: (k, n) values.

    Returns:
        (k,) correlations; NaN if a row is constant.
    """
    ranks = [stats.rankdata(values, axis=1) for values in (a, b)]
    centred = [r - r.mean(axis=1, keepdims=True) for r in ranks]
    covariance = (centred[0] * centred[1]).sum(axis=1)
    scale = np.sqrt((centred[0] ** 2).sum(axis=1) * (centred[1] ** 2).sum(axis=1))
    return np.clip(np.divide(covariance, scale, out=np.full_like(scale, np.nan), where=scale > 0), -1, 1)


def kendall(scores: Floats, ratings: Floats) -> float:
    """Compute Kendall's tau-b between (n,) scores and (n,) ratings; NaN if one of them is constant."""
    return float(stats.kendalltau(scores, ratings).statistic)


def pearson(scores: Floats, ratings: Floats) -> float:
    """Compute Pearson's r between (n,) scores and (n,) ratings; NaN if one of them is constant."""
    if np.ptp(scores) == 0 or np.ptp(ratings) == 0:
        return float("nan")
    return float(stats.pearsonr(scores, ratings).statistic)
