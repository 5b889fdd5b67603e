"""Spearman's rank correlation of two columns of numbers in the score report, with its p-value."""

from __future__ import annotations

import math

import numpy as np

from simllm.array_types import Floats


def spearman_with_p(a: Floats, b: Floats) -> tuple[float, float]:
    """Return Spearman's correlation of two (n,) columns without NaN, and its p-value.

    Both are NaN if fewer than three rows are left, or if all numbers of a column are equal.
    """
    from scipy.stats import spearmanr

    known = ~np.isnan(a) & ~np.isnan(b)
    a, b = a[known], b[known]
    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return math.nan, math.nan
    found = spearmanr(a, b)
    return float(found.statistic), float(found.pvalue)
