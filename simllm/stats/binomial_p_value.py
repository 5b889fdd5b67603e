"""The binomial test, which compares the accuracy of a classifier with the accuracy of guessing."""

from __future__ import annotations

from simllm.stats.significance_outcome import Outcome


def compare_with_chance(right: int, n: int, chance: float) -> Outcome:
    """Test whether an accuracy of `right` / `n` differs from `chance`, the accuracy of guessing."""
    from scipy.stats import binomtest

    return Outcome("binomial", float(right), float(binomtest(right, n, chance).pvalue))
