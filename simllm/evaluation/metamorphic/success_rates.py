"""Success rates of a tool on original and on rewritten code, and significance tests of their difference.

A tool is a program that reads code and writes an answer, such as a summary or corrected code. Its
success rate is the share of right answers.

The main test compares the mean rates of items (pieces of code). It does not compare single answers, because
several answers about one item are not independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from simllm.evaluation.metamorphic.item_outcome import ItemOutcome
from simllm.evaluation.metamorphic.likelihood_correlation import Likelihood, correlate_with_likelihood
from simllm.evaluation.metamorphic.metamorphic_fisher_and_mcnemar import (
    ItemTest,
    McNemar,
    Pooled,
    compare_items,
    compare_single_draws,
    pool,
)
from simllm.stats.paired_bootstrap_and_permutation import (
    LEAST_ITEMS,
    SEED,
    interval,
    resampled_means,
    sign_flip_p,
)

_LEVEL = 0.05


@dataclass(frozen=True)
class MeanDifference:
    """The mean difference between a tool's success rates on rewritten code and on original code.

    A tool is a program that reads code and writes an answer, such as a summary or corrected code. Its success
    rate is the share of right answers. The mean is over items. An item is a piece of code in its original and
    its rewritten form.

    Attributes:
        items: The number of items.
        original: The mean success rate on the original code of items.
        transformed: The mean success rate on the rewritten code.
        difference: `transformed` - `original`; negative if the rewritten code is harder for the tool.
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
    """Success rates of a tool on original code and on rewritten code, with significance tests.

    A tool is a program that reads code and writes an answer, such as a summary or corrected code. A success
    is a right answer. An item is a piece of code in its original and its rewritten form. The rewritten form
    is called the variant. A difference is the success rate on variants minus the success rate on originals.

    Some results are computed as in the thesis by de Koning (see `metamorphic_fisher_and_mcnemar`), so that
    they can be compared with it.

    Attributes:
        outcomes: For each item, the numbers of successes on the original and on the variant.
        mean: The mean difference over items, the main result.
        pooled: Fisher's test of all answers together, as in the thesis.
        items: Fisher's test of each item.
        better: The number of items that are easier when rewritten, with p < .05 by Fisher's test.
        worse: The number of items that are harder when rewritten, with p < .05 by Fisher's test.
        better_holm: Like `better`, but with p-values after Holm's correction over all items.
        worse_holm: Like `worse`, but with p-values after Holm's correction over all items.
        mcnemar: McNemar's test, if each item has one answer about the original and one about the variant;
            None otherwise.
        balanced: The ids of the items with both successes and failures, because the thesis uses only such
            items. In a study of several tools, it is enough that one of the tools has both on the item.
        filtered: The mean difference over the items in `balanced`; None if `balanced` is empty. This choice
            of items exaggerates the difference.
        likelihood: The correlation of the difference with the negative log-likelihood (NLL) of the original
            code; None if no item has an NLL.
        unchanged: The mean difference over the items whose variant equals the original; None if there are no
            such items. This difference is due to chance alone.
        groups: The mean difference in each group of items, by the group's name; empty if there is only one.
        by_rule: For each rewriting rule, two mean differences: over the items that the rule changed, and over
            those that it did not change. A mean without items is None.
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
    """Compute how often a tool succeeds on original and on rewritten code, and test the difference.

    A tool is a program that reads code and writes an answer, such as a summary or corrected code. A success
    is a right answer. The thesis by de Koning (see `metamorphic_fisher_and_mcnemar`) uses only some of the
    items. `SuccessStudy.filtered` has the results for such a choice.

    Args:
        outcomes: For each item (piece of code), the numbers of the tool's successes on the original and on
            the rewritten code. There must be at least one item.
        kept: The ids of the items to use for `SuccessStudy.filtered`. In a study of several tools, they are
            the items on which at least one tool has both successes and failures. If None, the items on which
            this tool has both are used.
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
    """Compare a tool's mean success rates on original and on rewritten code.

    The result has a significance test and a confidence interval. Both assume that different items (pieces of
    code) are independent of each other. They do not assume this of the answers about the same item.

    Args:
        outcomes: The numbers of answers and successes, for each of one or more items.
    """
    rates = np.array([one.rates for one in outcomes])
    differences = rates[:, 1] - rates[:, 0]
    low = high = None
    if len(outcomes) >= LEAST_ITEMS and np.ptp(differences) > 0:
        drawn = resampled_means(differences[None], np.random.default_rng(SEED))
        low, high = interval(drawn[:, 0], len(outcomes))
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
    """Compare a tool's mean success rates on original and on rewritten code; None if there are no items."""
    return compare_means(outcomes) if outcomes else None


def _count(tests: Sequence[ItemTest], sign: int, name: str) -> int:
    """Count the items with a p-value below .05 and a difference of a given sign.

    The difference is a tool's success rate on an item's rewritten code minus that on its original code.

    Args:
        tests: The tests of single items.
        sign: 1 to count positive differences (easier when rewritten), -1 to count negative ones.
        name: The p-value to use: "fisher_p" (not corrected) or "holm_p" (corrected for the number of items).
    """
    return sum(getattr(one, name) < _LEVEL and sign * one.difference > 0 for one in tests)
