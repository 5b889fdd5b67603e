"""Fisher's and McNemar's tests of a tool's successes on originals and variants.

Fisher's tests are those of the thesis, so that results can be compared with it. Like the thesis, they treat
all answers of a tool as independent, even several answers about one item; the p-value of `Pooled` is then too
small. An odds ratio is that of the original to the variant: None for 0/0, infinity for x/0.
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
    """Fisher's exact test of whether rewriting an item changes how often a tool succeeds on it.

    Attributes:
        holm_p: The p-value after Holm's correction over all items.
    """

    id: str
    difference: float
    odds_ratio: float | None
    fisher_p: float
    holm_p: float


@dataclass(frozen=True)
class Pooled:
    """Fisher's exact test of the answers about all items together.

    Attributes:
        table: Numbers of successes and failures: the first row on originals, the second on variants.
    """

    table: list[list[int]]
    odds_ratio: float | None
    fisher_p: float


def pool(outcomes: Sequence[ItemOutcome]) -> Pooled:
    """Compare the successes on originals and variants, added up over all items."""
    table = np.sum([one.table for one in outcomes], axis=0).tolist()
    return Pooled(table, odds_ratio(table), fisher_p(table))


def odds_ratio(table: list[list[int]]) -> float | None:
    """Return the odds ratio of a table such as `Pooled.table`."""
    (done, failed), (done_transformed, failed_transformed) = table
    above, below = done * failed_transformed, failed * done_transformed
    if below:
        return above / below
    return math.inf if above else None


def fisher_p(table: list[list[int]]) -> float:
    """Return the two-sided p-value of Fisher's exact test of a table of two rows and two columns."""
    from scipy.stats import fisher_exact

    # Rounding may give a little more than 1.
    return min(1.0, float(fisher_exact(table).pvalue))


def compare_items(outcomes: Sequence[ItemOutcome]) -> list[ItemTest]:
    """Test each item, in the order of `outcomes`."""
    p = [fisher_p(one.table) for one in outcomes]
    return [
        ItemTest(one.id, one.difference, odds_ratio(one.table), raw, corrected)
        for one, raw, corrected in zip(outcomes, p, holm(p), strict=True)
    ]


@dataclass(frozen=True)
class McNemar:
    """McNemar's exact test, for a tool with one answer on either side of each item.

    Attributes:
        lost: The number of items with success on the original only.
        won: The number of items with success on the variant only.
    """

    lost: int
    won: int
    p: float


def compare_single_draws(outcomes: Sequence[ItemOutcome]) -> McNemar | None:
    """Run McNemar's test; None if an item has more than one answer, or none, on a side."""
    from scipy.stats import binomtest

    if any((one.original[1], one.transformed[1]) != (1, 1) for one in outcomes):
        return None
    lost = sum(one.difference < 0 for one in outcomes)
    won = sum(one.difference > 0 for one in outcomes)
    # Without a discordant item, there is no evidence of a difference, and binomtest refuses n = 0.
    return McNemar(lost, won, float(binomtest(lost, lost + won).pvalue) if lost + won else 1.0)
