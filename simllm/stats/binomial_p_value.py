"""The binomial test, which compares the accuracy of a classifier with the accuracy of guessing."""

from __future__ import annotations

from simllm.stats.significance_outcome import Outcome


def compare_with_chance(right: int, n: int, chance: float) -> Outcome:
    """Test whether the accuracy of a classifier differs from the accuracy of guessing (binomial test).

    Args:
        right: The number of right predictions.
        n: The number of predictions.
        chance: The accuracy of guessing.
    """
    from scipy.stats import binomtest

    return Outcome("binomial", float(right), float(binomtest(right, n, chance).pvalue))
