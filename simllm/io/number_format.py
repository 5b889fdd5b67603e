"""Formatting of numbers in the style of papers, such as ".123" and "< .001"."""

from __future__ import annotations

import math
import re


def format_number(value: float, digits: int = 3) -> str:
    """Format a correlation or a p-value in the style of papers: ".123" for 0.1234, and "n/a" for NaN."""
    return "n/a" if math.isnan(value) else re.sub(r"^(-?)0\.", r"\1.", f"{value:.{digits}f}")


def format_count(count: int, noun: str) -> str:
    """Format a count with its noun, such as "1 pair" and "2,000 pairs"; the plural must end in -s."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def format_p_value(value: float, sign: bool = False) -> str:
    """Format a p-value, such as ".012", "< .001" or "> .999"; with `sign`, "= .012" instead of ".012"."""
    if value < 0.001:
        return "< .001"
    if value > 0.999:
        return "> .999"
    return f"{'= ' if sign else ''}{format_number(value)}"
