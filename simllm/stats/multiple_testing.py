"""Correction of p-values for multiple tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simllm.array_types import Floats


def holm(p_values: Sequence[float] | Floats) -> list[float]:
    """Correct p-values for multiple tests by Holm's method (1979).

    Args:
        p_values: The p-values of a family of tests. The correction limits the probability of at least one
            false positive in the whole family.

    Returns:
        The corrected p-values, in the same order.
    """
    corrected, least = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(np.argsort(p_values, kind="stable")):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[i]))
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
