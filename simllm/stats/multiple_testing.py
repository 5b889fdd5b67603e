"""Correction of p-values for multiple tests."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from simllm.array_types import Floats


def holm(p_values: Sequence[float] | Floats) -> list[float]:
    """Correct p-values for multiple tests by Holm's method (1979).

    Args:
        p_values: The p-values of a family of tests. The correction limits the probability of at least one
            false positive in the whole family. NaN stands for a test that was not possible; the family is
            then smaller.

    Returns:
        The corrected p-values, in the same order; NaN stays NaN.
    """
    corrected, least = [math.nan] * len(p_values), 0.0
    order = [int(i) for i in np.argsort(p_values, kind="stable") if not math.isnan(p_values[i])]
    for rank, i in enumerate(order):
        least = max(least, min(1.0, float((len(order) - rank) * p_values[i])))
        corrected[i] = least
    return corrected


def holm_of_pairs(p: Floats) -> Floats:
    """Correct the p-values of all pairs of m metrics by Holm's method.

    Args:
        p: (m, m) symmetric p-values: entry (i, j) compares metric i with metric j.

    Returns:
        (m, m) corrected p-values; 1 on the diagonal.
    """
    pairs = np.triu_indices(len(p), 1)
    corrected = np.ones_like(p)
    corrected[pairs] = holm(p[pairs])
    return np.minimum(corrected, corrected.T)
