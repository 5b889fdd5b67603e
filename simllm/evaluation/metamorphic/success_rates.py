"""Success rates on original and rewritten code, and the tests of their difference.

The published analysis is that of M. de Koning, "Metamorphic Testing for LLM-based Code Repair" (TU Delft,
2025).
It pools the draws of all items, as if they were independent. The verdict here takes the items as the unit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from simllm.stats.multiple_testing import holm
from simllm.stats.paired_resampling import SEED, interval, resampled_means, sign_flip_p

Floats = NDArray[np.float64]
_LEVEL = 0.05
_FEWEST = 3  # items for a correlation


@dataclass(frozen=True)
class ItemOutcome:
    """How often a tool succeeded on an item.

    Attributes:
        id: The item.
        original: The number of successes on the original code, and the number of draws.
        transformed: The same on the variant.
        nll: The mean negative log-likelihood of the original code a token, in nats; None if unknown.
        group: The group of the item; empty if it has none.
        rules: The rules that rewrote a place of the item; None if unknown.
        unchanged: Whether the variant equals the original.
    """

    id: str
    original: tuple[int, int]
    transformed: tuple[int, int]
    nll: float | None = None
    group: str = ""
    rules: tuple[str, ...] | None = None
    unchanged: bool = False

    @property
    def rates(self) -> tuple[float, float]:
        """The shares of successes on the original and on the variant."""
        return self.original[0] / self.original[1], self.transformed[0] / self.transformed[1]

    @property
    def difference(self) -> float:
        """The success rate on the variant minus that on the original."""
        original, transformed = self.rates
        return transformed - original

    @property
    def table(self) -> list[list[int]]:
        """Successes and failures on the original (first row) and on the variant."""
        return [[done, draws - done] for done, draws in (self.original, self.transformed)]

    @property
    def is_balanced(self) -> bool:
        """Whether the published filter keeps the item: not without success, nor without failure, on both."""
        return self.rates not in ((0.0, 0.0), (1.0, 1.0))


@dataclass(frozen=True)
class ItemTest:
    """Fisher's test of one item, as published.

    Attributes:
        odds_ratio: The odds of success on the original over those on the variant; None for 0/0, infinity for
            x/0.
        fisher_p: The p-value.
        holm_p: The p-value after Holm's correction over all items.
    """

    id: str
    difference: float
    odds_ratio: float | None
    fisher_p: float
    holm_p: float


@dataclass(frozen=True)
class MeanDifference:
    """The mean difference of success rates over items: the verdict.

    Attributes:
        items: The number of items.
        original: The mean success rate on originals.
        transformed: The mean success rate on variants.
        difference: Their difference; negative if the variants are harder.
        low: The lower end of its 95% bootstrap interval over items; None with fewer than 2 items.
        high: The upper end.
        p: The p-value of the sign flip test; exact for at most 13 items.
    """

    items: int
    original: float
    transformed: float
    difference: float
    low: float | None
    high: float | None
    p: float


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


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's correlation of negative log-likelihood and difference; None if it is not defined."""

    n: int
    rho: float | None
    p: float | None


@dataclass(frozen=True)
class Likelihood:
    """The correlation of difference and negative log-likelihood (NLL).

    Attributes:
        median: The median NLL.
        all: Over all items.
        below_median: Over the items with a smaller NLL, which a model may have read; the published figure.
        above_median: Over the items with a larger NLL.
    """

    median: float
    all: RankCorrelation
    below_median: RankCorrelation
    above_median: RankCorrelation


@dataclass(frozen=True)
class McNemar:
    """McNemar's exact test of items with a single draw a side.

    Attributes:
        lost: The number of items with success on the original only.
        won: The number of items with success on the variant only.
        p: The p-value.
    """

    lost: int
    won: int
    p: float


@dataclass(frozen=True)
class SuccessStudy:
    """The figures of a tool on a set of items.

    Attributes:
        outcomes: The items.
        mean: The verdict.
        pooled: The published analysis of all draws.
        items: Fisher's test of each item.
        better: The number of items with p < .05 that are easier when rewritten; then those that are harder,
            and both after Holm's correction.
        mcnemar: For single draws; None otherwise.
        balanced: The ids that the published filter keeps.
        filtered: The mean difference over these items, which the filter inflates; None without any.
        likelihood: None if no item has an NLL.
        unchanged: The mean difference over unchanged variants, the noise of the draws; None without any.
        groups: The mean difference in each group.
        by_rule: For each rule the mean difference of items with and without it; None without such items.
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
    """Compute the figures of a tool.

    Args:
        outcomes: The items, at least one; all have draws on both sides.
        kept: The ids that the published filter keeps; by default those of this tool alone. With several
            tools, it drops an item only if all tools always or never succeed.
    """
    outcomes = list(outcomes)
    tests = compare_items(outcomes)
    balanced = [one.id for one in outcomes if (one.id in kept if kept is not None else one.is_balanced)]
    groups = dict.fromkeys(one.group for one in outcomes)
    rules = dict.fromkeys(rule for one in outcomes for rule in one.rules or ())
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
        mcnemar=_compare_single_draws(outcomes),
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
    """Compare the mean success rates of originals and variants, with the items as the unit."""
    rates = np.array([one.rates for one in outcomes])
    differences = rates[:, 1] - rates[:, 0]
    low = high = None
    if len(outcomes) > 1:
        drawn = resampled_means(differences[None], np.random.default_rng(SEED))
        low, high = interval(drawn[:, 0])
    means = rates.mean(axis=0)
    return MeanDifference(
        items=len(outcomes),
        original=float(means[0]),
        transformed=float(means[1]),
        difference=float(differences.mean()),
        low=low,
        high=high,
        p=sign_flip_p(differences, np.random.default_rng(SEED)),
    )


def _means_if(outcomes: Sequence[ItemOutcome]) -> MeanDifference | None:
    """Compare the mean success rates; None without items."""
    return compare_means(outcomes) if outcomes else None


def pool(outcomes: Sequence[ItemOutcome]) -> Pooled:
    """Add up the draws of all items, and test them as published."""
    table = np.sum([one.table for one in outcomes], axis=0).tolist()
    return Pooled(table, odds_ratio(table), fisher_p(table))


def odds_ratio(table: list[list[int]]) -> float | None:
    """Return the odds of success on originals over those on variants; None for 0/0, infinity for x/0."""
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


def _count(tests: Sequence[ItemTest], sign: int, name: str) -> int:
    """Count the items with a p-value below .05 and a difference of one sign."""
    return sum(getattr(one, name) < _LEVEL and sign * one.difference > 0 for one in tests)


def _compare_single_draws(outcomes: Sequence[ItemOutcome]) -> McNemar | None:
    """Compare the sides by McNemar's exact test if all items have a single draw a side."""
    from scipy.stats import binomtest

    if any((one.original[1], one.transformed[1]) != (1, 1) for one in outcomes):
        return None
    lost = sum(one.difference < 0 for one in outcomes)
    won = sum(one.difference > 0 for one in outcomes)
    return McNemar(lost, won, float(binomtest(lost, lost + won).pvalue) if lost + won else 1.0)


def correlate_with_likelihood(outcomes: Sequence[ItemOutcome]) -> Likelihood | None:
    """Correlate the difference with the negative log-likelihood; None if no item has one."""
    known = [(one.nll, one.difference) for one in outcomes if one.nll is not None]
    if not known:
        return None
    nll, difference = np.array(known).T
    median = float(np.median(nll))
    below, above = nll < median, nll > median
    return Likelihood(
        median,
        _correlate(nll, difference),
        _correlate(nll[below], difference[below]),
        _correlate(nll[above], difference[above]),
    )


def _correlate(a: Floats, b: Floats) -> RankCorrelation:
    """Compute Spearman's correlation; None under three items, or if a side is constant."""
    from scipy.stats import spearmanr

    n = len(a)
    if n < _FEWEST or np.ptp(a) == 0 or np.ptp(b) == 0:
        return RankCorrelation(n, None, None)
    found = spearmanr(a, b)
    return RankCorrelation(n, float(found.statistic), float(found.pvalue))
