"""Estimate of a metric: its value with its 95% interval."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """The value of a metric with its 95% interval. Numbers that are not defined, such as 0 / 0, are None.

    Attributes:
        value: The value.
        low: The lower end of the interval.
        high: The upper end of the interval.
    """

    value: float | None
    low: float | None = None
    high: float | None = None


def make_estimate(value: float, low: float = math.nan, high: float = math.nan) -> Estimate:
    """Make an estimate from a metric's value and the two ends of its 95% interval.

    An argument that is NaN, because it is not defined, becomes None in the estimate.
    """
    return Estimate(*(finite(number) for number in (value, low, high)))


def finite(value: float) -> float | None:
    """Convert NaN to None; return any other number unchanged."""
    return None if math.isnan(value) else value
