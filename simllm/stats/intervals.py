"""Confidence intervals (95%) for proportions, their differences and means; and the spread of a few values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simllm.array_types import Floats, Ints

Z = 1.959963984540054  # half the width of a 95% interval, as a multiple of the standard error


def wilson(successes: float, n: float) -> tuple[float, float]:
    """Return the ends of Wilson's 95% confidence interval for `successes` / `n`; both are NaN if `n` is 0."""
    from statsmodels.stats.proportion import proportion_confint

    if not n:
        return math.nan, math.nan
    low, high = proportion_confint(successes, n, method="wilson")
    return float(low), float(high)


def paired_difference(only_a: int, only_b: int, n: int) -> tuple[float, tuple[float, float]]:
    """Compute the difference of two paired proportions, and its interval (Agresti and Min, 2005).

    Of the same n items, some have property A, such as "the first classifier is right", and some have B.
    `only_a` items have A but not B, and `only_b` items B but not A.
    """
    if not n:
        return 0.0, (math.nan, math.nan)
    # Agresti and Min add half an item to each of the four cells.
    a, b, total = only_a + 0.5, only_b + 0.5, n + 2
    center, around = (a - b) / total, Z * math.sqrt(a + b - (a - b) ** 2 / total) / total
    return (only_a - only_b) / n, (max(-1.0, center - around), min(1.0, center + around))


def independent_interval(first: Ints, second: Ints) -> tuple[float, float]:
    """Compute Newcombe's interval (1998) of the difference between the shares of right answers in two groups.

    Both arrays are (2,): the number of right and the number of wrong answers. It is first minus second.
    """
    from statsmodels.stats.proportion import confint_proportions_2indep

    low, high = confint_proportions_2indep(first[0], first.sum(), second[0], second.sum(), method="newcomb")
    return float(low), float(high)


def mean_interval(values: Floats) -> tuple[float, float]:
    """Return the ends of Student's interval of the mean of (n,) values; NaN for one value or equal values."""
    from scipy.stats import t

    n = len(values)
    spread = float(values.std(ddof=1)) if n > 1 else 0.0
    if spread < 1e-12:
        return math.nan, math.nan
    around = float(t.ppf(0.975, n - 1)) * spread / math.sqrt(n)
    return float(values.mean()) - around, float(values.mean()) + around


@dataclass(frozen=True)
class Spread:
    """The spread of n values, such as a metric of each fold; `sd` is that of a sample, None for one value."""

    n: int
    mean: float
    sd: float | None
    lowest: float
    highest: float


def measure_spread(values: Sequence[float]) -> Spread:
    """Measure the spread of one or more values."""
    table = np.asarray(values, float)
    sd = float(table.std(ddof=1)) if len(table) > 1 else None
    return Spread(len(table), float(table.mean()), sd, float(table.min()), float(table.max()))
