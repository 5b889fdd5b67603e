"""Kendall's tau-b and Pearson's r between scores and ratings."""

from __future__ import annotations

import numpy as np
from scipy import stats

from simllm.array_types import Floats


def kendall(scores: Floats, ratings: Floats) -> float:
    """Compute Kendall's tau-b between (n,) scores and (n,) ratings; NaN if one of them is constant."""
    return float(stats.kendalltau(scores, ratings).statistic)


def pearson(scores: Floats, ratings: Floats) -> float:
    """Compute Pearson's r between (n,) scores and (n,) ratings; NaN if one of them is constant."""
    if np.ptp(scores) == 0 or np.ptp(ratings) == 0:
        return float("nan")
    return float(stats.pearsonr(scores, ratings).statistic)
