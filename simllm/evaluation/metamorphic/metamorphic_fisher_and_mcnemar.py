"""Fisher's and McNemar's tests of a tool's successes on original and on rewritten code.

A tool is a program that reads code and writes an answer, such as a summary or corrected code. A success is a
right answer.

Fisher's tests are those of the thesis by M. de Koning, "Metamorphic Testing for LLM-based Code Repair"
(2025), so that results can be compared with the thesis. Like the thesis, they treat all answers of a tool as
independent, even several answers about the same piece of code. McNemar's test is for studies in which each
original and each rewritten piece of code has exactly one answer.
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
    """Fisher's exact test of whether rewriting a piece of code changes how often a tool succeeds on it.

    A tool is a program that reads code and writes an answer, such as a summary or corrected code. A success
    is a right answer. An item is a piece of code in an original and a rewritten form. The rewritten form is
    called the variant. The null hypothesis is that success is equally likely on the original and on the
    variant.

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
    """Fisher's exact test of whether a tool succeeds equally often on original and on rewritten code.

    A tool is a program that reads code and writes an answer, such as a summary or corrected code. A success
    is a right answer. The answers about all items (pieces of code) are counted together.

    M. de Koning's thesis "Metamorphic Testing for LLM-based Code Repair" (2025) uses this test. It treats all
    answers of the tool as independent. But several answers about the same item are not independent, so that
    the p-value is too small.

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
    """Compare a tool's successes (right answers) on original and on rewritten code by Fisher's exact test.

    Args:
        outcomes: The numbers of the tool's successes and failures on each item (piece of code). The numbers
            of all items are added up before the test.
    """
    table = np.sum([one.table for one in outcomes], axis=0).tolist()
    return Pooled(table, odds_ratio(table), fisher_p(table))


def odds_ratio(table: list[list[int]]) -> float | None:
    """Return the odds of a right answer on original code divided by the odds on rewritten code.

    Args:
        table: A tool's numbers of right and of wrong answers: the first row on original code, the second on
            rewritten code.

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
    """Test for each piece of code whether a tool succeeds equally often before and after rewriting it.

    A tool is a program that reads code and writes an answer, such as a summary or corrected code. A piece of
    code, in its original and its rewritten form, is called an item. Each item gets its own Fisher's exact
    test. The p-values are also corrected for the number of items, by Holm's method.

    Args:
        outcomes: The numbers of the tool's successes and failures on each item.

    Returns:
        The test of each item, in the order of `outcomes`.
    """
    p = [fisher_p(one.table) for one in outcomes]
    return [
        ItemTest(one.id, one.difference, odds_ratio(one.table), raw, corrected)
        for one, raw, corrected in zip(outcomes, p, holm(p), strict=True)
    ]


@dataclass(frozen=True)
class McNemar:
    """McNemar's exact test of whether a tool succeeds equally often on original and on rewritten code.

    A tool is a program that reads code and writes an answer, such as a summary or corrected code. The test is
    for a tool that gave exactly two answers about each item (piece of code): one about the original code, and
    one about the rewritten code. A success is a right answer.

    Attributes:
        lost: The number of items with success on the original code only.
        won: The number of items with success on the rewritten code only.
        p: The p-value.
    """

    lost: int
    won: int
    p: float


def compare_single_draws(outcomes: Sequence[ItemOutcome]) -> McNemar | None:
    """Test by McNemar's test whether a tool succeeds equally often on original and on rewritten code.

    Args:
        outcomes: The numbers of the tool's answers and successes (right answers) on each item (piece of
            code).

    Returns:
        The test. None if an item has no answer or several answers about its original code, or about its
        rewritten code.
    """
    from scipy.stats import binomtest

    if any((one.original[1], one.transformed[1]) != (1, 1) for one in outcomes):
        return None
    lost = sum(one.difference < 0 for one in outcomes)
    won = sum(one.difference > 0 for one in outcomes)
    return McNemar(lost, won, float(binomtest(lost, lost + won).pvalue) if lost + won else 1.0)
