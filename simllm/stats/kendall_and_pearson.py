"""Kendall's tau-b and Pearson's r between scores and ratings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]


def kendall(scores: Floats, ratings: Floats) -> float:
    """Compute Kendall's tau-b between (n,) scores and (n,) ratings; NaN if one of them is constant."""
    return float(stats.kendalltau(scores, ratings).statistic)


def pearson(scores: Floats, ratings: Floats) -> float:
    """Compute Pearson's r between (n,) scores and (n,) ratings; NaN if one of them is constant."""
    if np.ptp(scores) == 0 or np.ptp(ratings) == 0:
        return float("nan")
    return float(stats.pearsonr(scores, ratings).statistic)
