"""Analysis of success rates as in M. de Koning, "Metamorphic Testing for LLM-based Code Repair" (2025).

The results can be compared with those of the thesis. Like the thesis, this module treats all answers of a
tool as independent, even several answers about the same piece of code.
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
    """Fisher's exact test of a tool's success on one item.

    An item is a piece of code in an original and a rewritten form; the rewritten form is its variant. The
    null hypothesis is that success is equally likely on both forms.

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
    """Fisher's exact test of a tool's success on original and on rewritten code, over all items together.

    M. de Koning's thesis "Metamorphic Testing for LLM-based Code Repair" (2025) uses this test. It treats all
    answers of the tool as independent. But several answers about the same item (piece of code) are not
    independent, so that the p-value is too small.

    Attributes:
        table: Numbers of successes and failures: the first row on original code, the second on rewritten
            code.
        odds_ratio: The odds of success on original code divided by the odds on rewritten code; None for 0/0,
            infinity for x/0.
        fisher_p: The p-value of the test.
    """

    table: list[list[int]]
    odds_ratio: float | None
    fisher_p: float


def pool(outcomes: Sequence[ItemOutcome]) -> Pooled:
    """Compare a tool's successes on original and on rewritten code by Fisher's test, over all items together.

    Args:
        outcomes: The numbers of the tool's successes and failures on each item (piece of code), which are
            added up.
    """
    table = np.sum([one.table for one in outcomes], axis=0).tolist()
    return Pooled(table, odds_ratio(table), fisher_p(table))


def odds_ratio(table: list[list[int]]) -> float | None:
    """Return the odds of a tool's success on original code divided by the odds on rewritten code.

    Args:
        table: Numbers of successes and failures: the first row on original code, the second on rewritten
            code.

    Returns:
        The odds ratio; None for 0/0, infinity for x/0.
    """
    (done, failed), (done_transformed, failed_transformed) = table
    above, below = done * failed_transformed, failed * done_transformed
    if below:
        return above / below
    return math.inf if above else None


def fisher_p(table: list[list[int]]) -> float:
    """Return the two-sided p-value of Fisher's exact test of a table of counts (two rows, two columns)."""
    from scipy.stats import fisher_exact

    return min(1.0, float(fisher_exact(table).pvalue))


def compare_items(outcomes: Sequence[ItemOutcome]) -> list[ItemTest]:
    """Compare a tool's success on the original and the rewritten code of each item by Fisher's exact test.

    The p-values are also corrected for the number of items, by Holm's method.

    Args:
        outcomes: The numbers of the tool's successes and failures on each item (piece of code).
    """
    p = [fisher_p(one.table) for one in outcomes]
    return [
        ItemTest(one.id, one.difference, odds_ratio(one.table), raw, corrected)
        for one, raw, corrected in zip(outcomes, p, holm(p), strict=True)
    ]
