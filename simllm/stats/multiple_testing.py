"""Correction of p-values for multiple tests."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from simllm.array_types import Floats


def holm(p_values: Sequence[float] | Floats) -> list[float]:
    """Correct the p-values of a family of tests by Holm's method (1979), in the same order.

    The correction limits the probability of at least one false positive in the whole family.
    """
    corrected, least = [math.nan] * len(p_values), 0.0
    # NaN is a test that was not possible: it stays NaN, and the family is smaller.
    order = [int(i) for i in np.argsort(p_values, kind="stable") if not math.isnan(p_values[i])]
    for rank, i in enumerate(order):
        least = max(least, min(1.0, float((len(order) - rank) * p_values[i])))
        corrected[i] = least
    return corrected


def holm_of_pairs(p: Floats) -> Floats:
    """Correct the (m, m) symmetric p-values of all pairs of m metrics by Holm's method; the diagonal is 1."""
    pairs = np.triu_indices(len(p), 1)
    corrected = np.ones_like(p)
    corrected[pairs] = holm(p[pairs])
    return np.minimum(corrected, corrected.T)
