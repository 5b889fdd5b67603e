"""The published analysis of success rates.

It is that of M. de Koning, "Metamorphic Testing for LLM-based Code Repair" (TU Delft, 2025). It pools the
draws of all items, as if they were independent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simllm.evaluation.metamorphic.item_outcome import ItemOutcome
from simllm.stats.multiple_testing import holm


@dataclass(frozen=True)
class ItemTest:
    """Fisher's test of one item, as published.

    Attributes:
        odds_ratio: The odds of success on the original divided by the odds on the variant; None for 0/0,
            infinity for x/0.
        fisher_p: The p-value.
        holm_p: The p-value after Holm's correction over all items.
    """

    id: str
    difference: float
    odds_ratio: float | None
    fisher_p: float
    holm_p: float


@dataclass(frozen=True)
class Pooled:
    """The draws of all items together, as published. Draws are not independent, so p is too small.

    Attributes:
        table: Successes and failures on originals (first row) and on variants.
        odds_ratio: See `ItemTest`.
        fisher_p: The p-value of Fisher's test.
    """

    table: list[list[int]]
    odds_ratio: float | None
    fisher_p: float


def pool(outcomes: Sequence[ItemOutcome]) -> Pooled:
    """Add up the draws of all items, and test them as published."""
    table = np.sum([one.table for one in outcomes], axis=0).tolist()
    return Pooled(table, odds_ratio(table), fisher_p(table))


def odds_ratio(table: list[list[int]]) -> float | None:
    """Return the odds on originals divided by those on variants; None for 0/0, infinity for x/0."""
    (done, failed), (done_transformed, failed_transformed) = table
    above, below = done * failed_transformed, failed * done_transformed
    if below:
        return above / below
    return math.inf if above else None


def fisher_p(table: list[list[int]]) -> float:
    """Return the p-value of Fisher's exact test, two-sided."""
    from scipy.stats import fisher_exact

    return min(1.0, float(fisher_exact(table).pvalue))


def compare_items(outcomes: Sequence[ItemOutcome]) -> list[ItemTest]:
    """Test each item by Fisher's exact test, with Holm's correction over all items."""
    p = [fisher_p(one.table) for one in outcomes]
    return [
        ItemTest(one.id, one.difference, odds_ratio(one.table), raw, corrected)
        for one, raw, corrected in zip(outcomes, p, holm(p), strict=True)
    ]
