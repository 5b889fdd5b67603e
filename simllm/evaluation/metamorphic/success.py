"""Success rates of a tool on originals and variants, with tests of their difference.

Fisher's tests are those of the thesis, so that results can be compared with it. Like the thesis, they treat
all answers of a tool as independent, even several answers about one item; the p-value of `Pooled` is then too
small. An odds ratio is that of the original to the variant: None for 0/0, infinity for x/0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from simllm.evaluation.metamorphic.likelihood import Likelihood, correlate_with_likelihood
from simllm.evaluation.metamorphic.results import ItemOutcome
from simllm.io import tables
from simllm.stats.resampling import paired_mean
from simllm.stats.significance import fisher, holm, mcnemar

_LEVEL = 0.05


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
    return Pooled(table, *_odds_ratio_and_p(table))


def compare_items(outcomes: Sequence[ItemOutcome]) -> list[ItemTest]:
    """Test each item, in the order of `outcomes`."""
    tests = [_odds_ratio_and_p(one.table) for one in outcomes]
    return [
        ItemTest(one.id, one.difference, odds_ratio, p, corrected)
        for one, (odds_ratio, p), corrected in zip(outcomes, tests, holm([p for _, p in tests]), strict=True)
    ]


def _odds_ratio_and_p(table: list[list[int]]) -> tuple[float | None, float]:
    """Run Fisher's test of a table such as `Pooled.table`."""
    found = fisher(table)
    return None if math.isnan(found.statistic) else found.statistic, found.p


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
    if any((one.original[1], one.transformed[1]) != (1, 1) for one in outcomes):
        return None
    lost = sum(one.difference < 0 for one in outcomes)
    won = sum(one.difference > 0 for one in outcomes)
    return McNemar(lost, won, mcnemar(lost, won, "mcnemar-exact").p)


@dataclass(frozen=True)
class MeanDifference:
    """The mean difference over items, with the mean success rates.

    Attributes:
        low: The lower end of the 95% bootstrap interval of `difference`; None with fewer than 6 items, or if
            all items have the same difference.
        high: The upper end of this interval, or None.
        p: The p-value of a sign flip test of the hypothesis that `difference` is 0; exact for at most 13
            items.
    """

    items: int
    original: float
    transformed: float
    difference: float
    low: float | None
    high: float | None
    p: float


@dataclass(frozen=True)
class SuccessStudy:
    """Success rates of a tool, with significance tests; some as in the thesis, for comparison with it.

    Attributes:
        mean: The mean difference over items, the main result.
        pooled: Fisher's test of all answers together, as in the thesis.
        items: Fisher's test of each item.
        better: The number of items that are easier when rewritten, with p < .05 by Fisher's test.
        worse: The number of items that are harder when rewritten, with p < .05 by Fisher's test.
        better_holm: Like `better`, but with p-values after Holm's correction over all items.
        worse_holm: Like `worse`, but with p-values after Holm's correction over all items.
        mcnemar: None unless each item has one answer about the original and one about the variant.
        balanced: The ids of the items with both successes and failures of some tool; the thesis uses only
            these.
        filtered: The mean difference over the items in `balanced`; None if there are none. This choice of
            items exaggerates the difference.
        likelihood: None if no item has an NLL.
        unchanged: The mean difference over the items whose variant equals the original, which is due to
            chance alone; None if there are none.
        groups: The mean difference in each group of items; empty if there is only one.
        by_rule: For each rule, the mean differences over the items that it changed, and over those that it
            did not change. A mean without items is None.
    """

    outcomes: list[ItemOutcome]
    mean: MeanDifference
    pooled: Pooled
    items: list[ItemTest]
    better: int
    worse: int
    better_holm: int
    worse_holm: int
    mcnemar: McNemar | None
    balanced: list[str]
    filtered: MeanDifference | None
    likelihood: Likelihood | None
    unchanged: MeanDifference | None
    groups: dict[str, MeanDifference] = field(default_factory=dict)
    by_rule: dict[str, tuple[MeanDifference | None, MeanDifference | None]] = field(default_factory=dict)


def study_success(outcomes: Sequence[ItemOutcome], kept: frozenset[str] | None = None) -> SuccessStudy:
    """Compute the success rates on one or more items, and test the difference.

    `kept` are the ids for `SuccessStudy.balanced`; by default, the items that are balanced for this tool.
    """
    outcomes = list(outcomes)
    tests = compare_items(outcomes)
    # In a study of several tools, one tool with both is enough, so that all tools keep the same items.
    balanced = [one.id for one in outcomes if (one.id in kept if kept is not None else one.is_balanced)]
    groups = dict.fromkeys(one.group for one in outcomes)
    rules = dict.fromkeys(rule for one in outcomes for rule in one.rules or ())
    # Items of unknown rules would count as not changed by any.
    known = [one for one in outcomes if one.rules is not None]
    return SuccessStudy(
        outcomes=outcomes,
        mean=compare_means(outcomes),
        pooled=pool(outcomes),
        items=tests,
        better=_count(tests, 1, "fisher_p"),
        worse=_count(tests, -1, "fisher_p"),
        better_holm=_count(tests, 1, "holm_p"),
        worse_holm=_count(tests, -1, "holm_p"),
        mcnemar=compare_single_draws(outcomes),
        balanced=balanced,
        filtered=_means_if([one for one in outcomes if one.id in set(balanced)]),
        likelihood=correlate_with_likelihood(outcomes),
        unchanged=_means_if([one for one in outcomes if one.unchanged]),
        groups={
            group: compare_means([one for one in outcomes if one.group == group])
            for group in groups
            if len(groups) > 1
        },
        by_rule={
            rule: (
                _means_if([one for one in known if rule in (one.rules or ())]),
                _means_if([one for one in known if rule not in (one.rules or ())]),
            )
            for rule in rules
        },
    )


def compare_means(outcomes: Sequence[ItemOutcome]) -> MeanDifference:
    """Compare the mean success rates over one or more items, which must be independent of each other.

    Several answers about the same item need not be independent.
    """
    rates = np.array([one.rates for one in outcomes])
    original, transformed = rates.mean(axis=0).tolist()
    found = tables.finite(paired_mean(rates[:, 1] - rates[:, 0]))
    return MeanDifference(len(outcomes), original, transformed, *found)


def _means_if(outcomes: Sequence[ItemOutcome]) -> MeanDifference | None:
    """Compare the mean success rates; None if there are no items."""
    return compare_means(outcomes) if outcomes else None


def _count(tests: Sequence[ItemTest], sign: int, name: str) -> int:
    """Count the items with a p-value ("fisher_p" or "holm_p") below .05 and a difference of a sign."""
    return sum(getattr(one, name) < _LEVEL and sign * one.difference > 0 for one in tests)
