"""Analysis of success rates as in M. de Koning, "Metamorphic Testing for LLM-based Code Repair" (2025).

The results can be compared with those of that thesis. As there, all answers of a tool count as independent,
even several answers about one item.
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
    """Fisher's exact test of one item.

    The null hypothesis is that success is equally likely on the item's original code and on its variant.

    Attributes:
        id: The id of the item.
        difference: The success rate on the variant minus that on the original.
        odds_ratio: The odds of success on the original divided by the odds on the variant; None for 0/0,
            infinity for x/0.
        fisher_p: The p-value of the test.
        holm_p: The p-value after Holm's correction over all items.
    """

    id: str
    difference: float
    odds_ratio: float | None
    fisher_p: float
    holm_p: float


@dataclass(frozen=True)
class Pooled:
    """Fisher's exact test of the draws (single answers of a tool) of all items together.

    M. de Koning's thesis "Metamorphic Testing for LLM-based Code Repair" (2025) uses this test. Draws
    about the same item are not independent, so that the p-value is too small.

    Attributes:
        table: Numbers of successes and failures: the first row on originals, the second on variants.
        odds_ratio: The odds of success on originals divided by the odds on variants; None for 0/0, infinity
            for x/0.
        fisher_p: The p-value of the test.
    """

    table: list[list[int]]
    odds_ratio: float | None
    fisher_p: float


def pool(outcomes: Sequence[ItemOutcome]) -> Pooled:
    """Add up the successes and failures of all items, and compare originals and variants by Fisher's test."""
    table = np.sum([one.table for one in outcomes], axis=0).tolist()
    return Pooled(table, odds_ratio(table), fisher_p(table))


def odds_ratio(table: list[list[int]]) -> float | None:
    """Return the odds of success on originals divided by the odds on variants.

    Args:
        table: Numbers of successes and failures: the first row on originals, the second on variants.

    Returns:
        The odds ratio; None for 0/0, infinity for x/0.
    """
    (done, failed), (done_transformed, failed_transformed) = table
    above, below = done * failed_transformed, failed * done_transformed
    if below:
        return above / below
    return math.inf if above else None


def fisher_p(table: list[list[int]]) -> float:
    """Return the two-sided p-value of Fisher's exact test of a table of two rows and two columns."""
    from scipy.stats import fisher_exact

    return min(1.0, float(fisher_exact(table).pvalue))


def compare_items(outcomes: Sequence[ItemOutcome]) -> list[ItemTest]:
    """Compare original and variant of each item by Fisher's exact test, with Holm's correction."""
    p = [fisher_p(one.table) for one in outcomes]
    return [
        ItemTest(one.id, one.difference, odds_ratio(one.table), raw, corrected)
        for one, raw, corrected in zip(outcomes, p, holm(p), strict=True)
    ]
