"""Estimate of a metric: its value with its 95% interval."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """The value of a metric with its 95% interval. Numbers that are not defined, such as 0 / 0, are None."""

    value: float | None
    low: float | None = None
    high: float | None = None


def make_estimate(value: float, low: float = math.nan, high: float = math.nan) -> Estimate:
    """Make an estimate from numbers of which NaN becomes None."""
    return Estimate(*(finite(number) for number in (value, low, high)))


def finite(value: float) -> float | None:
    """Convert NaN to None."""
    return None if math.isnan(value) else value
