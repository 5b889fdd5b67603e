"""Trends in the scores of text pairs: for example, whether pairs with longer references score lower."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from simllm.io.number_format import format_number, format_p_value
from simllm.metrics.protocol import Floats


def describe_trend(which: str, numbers: Sequence[int] | None, scores: Floats) -> str:
    """Describe in a sentence how scores depend on a property of the pairs, such as the reference's length.

    For example: "Longer references score lower", followed by Spearman's correlation and its p-value.

    Args:
        which: The subject of the sentence, which names the pairs with larger numbers, such as "longer
            references".
        numbers: The property of each of the n text pairs, such as the length; None if it is not a number.
        scores: (n,) scores by the main metric. With several systems, each is the mean of the systems' scores.

    Returns:
        The sentence; empty if `numbers` is None, or if the correlation is undefined.
    """
    if numbers is None:
        return ""
    rank = {number: i for i, number in enumerate(sorted(set(numbers)))}  # the numbers may be very large
    rho, p = spearman_with_p(np.array([rank[number] for number in numbers], float), scores)
    if math.isnan(rho):
        return ""
    found = f"(Spearman's \u03c1 = {format_number(rho)}, p {format_p_value(p, sign=True)})"
    if p < 0.05:
        return f"{which[0].upper()}{which[1:]} score {'higher' if rho > 0 else 'lower'} {found}."
    return f"There is no sign that {which} score higher or lower {found}."


def spearman_with_p(a: Floats, b: Floats) -> tuple[float, float]:
    """Return Spearman's correlation of two columns of numbers, and its p-value.

    Rows with NaN in either column do not count. Both results are NaN if fewer than three rows are left, or if
    all numbers of a column are equal.

    Args:
        a: (n,) numbers, such as the scores by one metric.
        b: (n,) numbers, such as the scores by another metric.
    """
    from scipy.stats import spearmanr

    known = ~np.isnan(a) & ~np.isnan(b)
    a, b = a[known], b[known]
    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return math.nan, math.nan
    found = spearmanr(a, b)
    return float(found.statistic), float(found.pvalue)
