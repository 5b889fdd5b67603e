"""Questions about one classifier, with the significance tests that answer them.

A test gives a `Finding`; after the correction for several tests, the report shows it as an `Answer`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pandas import DataFrame, Series

from simllm.array_types import Floats
from simllm.evaluation.classifiers.metrics import (
    LOWER_IS_BETTER,
    class_numbers,
    compute_metrics,
    folds_and_sets,
    measure,
    strict_value,
)
from simllm.stats.classification import bootstrap, count
from simllm.stats.intervals import independent_interval, mean_interval, paired_difference, wilson
from simllm.stats.resampling import interval, paired_permutation
from simllm.stats.significance import (
    FEW_DISCORDANT,
    Outcome,
    compare_group_means,
    compare_groups,
    compare_samples,
    compare_with_chance,
    holm,
    mcnemar,
)


@dataclass(frozen=True)
class Finding:
    """The result of one significance test, before the correction for multiple tests.

    Attributes:
        outcome: Its p-value is NaN if no test was possible.
        why: The reason for choosing this test, with the numbers on which the choice depends.
        effect: The size of the effect, such as a difference of accuracies; None if it is not defined. A
            difference is that of the first in `classifiers` minus the second.
        words: The observed result as a sentence, without the full stop.
        interval: The ends of the effect's 95% interval.
        assumptions: What the test assumes.
    """

    question: str
    classifiers: list[str]
    outcome: Outcome
    why: str
    effect: float | None
    words: str
    interval: tuple[float, float] | None = None
    assumptions: str = "The items are independent of each other."


@dataclass(frozen=True)
class Answer:
    """A finding as the report shows it. Undefined numbers are None.

    Attributes:
        split: The split whose predictions were tested, such as "test".
        p_holm: The p-value after the correction for the number of tests of the same question. The correction
            is Holm's, unless the test itself corrects its p-values (as Nemenyi's test does).
        low: The lower end of the effect's 95% interval.
        high: The upper end of this interval.
        verdict: The observed result, and whether it is significant, in words.
    """

    question: str
    split: str
    classifiers: list[str]
    test: str
    why: str
    assumptions: str
    statistic: float | None
    df: int | None
    p: float | None
    p_holm: float | None
    effect: float | None
    low: float | None
    high: float | None
    verdict: str


def answer(findings: Sequence[Finding], split: str, alpha: float, is_corrected: bool = False) -> list[Answer]:
    """Correct the p-values of the findings for one question by Holm's method, and add verdicts.

    `is_corrected` says that the test has corrected its p-values already.
    """
    raw = [finding.outcome.p for finding in findings]
    answers = []
    for finding, p in zip(findings, raw if is_corrected else holm(raw), strict=True):
        numbers = (finding.outcome.statistic, finding.outcome.p, p, *(finding.interval or (math.nan,) * 2))
        statistic, p_value, p_holm, low_end, high_end = (None if math.isnan(x) else x for x in numbers)
        answers.append(
            Answer(
                question=finding.question,
                split=split,
                classifiers=finding.classifiers,
                test=finding.outcome.test,
                why=finding.why,
                assumptions=finding.assumptions,
                statistic=statistic,
                df=finding.outcome.df,
                p=p_value,
                p_holm=p_holm,
                effect=finding.effect,
                low=low_end,
                high=high_end,
                verdict=_verdict(finding, p, alpha),
            )
        )
    return answers


def _verdict(finding: Finding, p: float, alpha: float) -> str:
    """Write the result and whether it is significant; `p` is corrected, and NaN if no test was possible."""
    # Without an observed difference, the sentence says all; a p-value would add nothing.
    if math.isnan(p) or finding.effect == 0:
        return f"{finding.words}."
    name = "p" if p == finding.outcome.p else "corrected p"
    if p <= alpha:
        return f"{finding.words}. This is significant: {name} = {format_p(p)} is at most {alpha:g}."
    shown = f"{name} = {format_p(p)} is above {alpha:g}"
    return f"{finding.words}. The data do not show that this is more than chance: {shown}."


def format_p(p: float) -> str:
    """Format a p-value with three decimals, or with two significant digits if it is below .01."""
    return f"{p:.3f}" if p >= 0.01 else f"{p:.2g}"


def is_right(rows: DataFrame) -> Series:
    """Return for each row whether the predicted class is the true class; False for an unparsed output."""
    return rows["predicted"] == rows["gold"]


def mean_by_item(values: Series, rows: DataFrame) -> Series:
    """Average a value of each row over the runs and folds of each item."""
    return values.astype(float).groupby([rows["data_set"], rows["item"]], sort=False).mean()


def ask_guessing(name: str, rows: DataFrame, classes: int) -> Finding:
    """Test whether a classifier is right more often than guessing, which is right with 1 / `classes`."""
    return _ask_chance(name, rows, 1 / classes, "guessing", f"1 / {classes} classes")


def ask_largest_class(name: str, rows: DataFrame) -> Finding:
    """Test whether a classifier is more accurate than always predicting the most frequent true class."""
    shares = rows["gold"].value_counts(normalize=True)
    reason = f"the share of {shares.index[0]} among the true classes"
    return _ask_chance(name, rows, float(shares.iloc[0]), "always answering the largest class", reason)


def _ask_chance(name: str, rows: DataFrame, chance: float, other: str, reason: str) -> Finding:
    """Test by a binomial test whether a classifier is right more often than `other`, with `chance`."""
    shares = mean_by_item(is_right(rows), rows)
    share, n = float(shares.mean()), len(shares)
    # Every item counts once, by its share of right runs; the binomial test needs a whole number.
    right = round(share * n)
    low, high = wilson(share * n, n)
    why = f"{right} of {n} items are right"
    if len(rows) > n:
        why += f", after averaging {len(rows)} runs or folds"
    effect = share - chance
    side = "more often than" if effect > 0 else "less often than" if effect < 0 else "as often as"
    return Finding(
        question=f"Is {name} right more often than {other}?",
        classifiers=[name],
        outcome=compare_with_chance(right, n, chance),
        why=f"{why}; the chance is {chance:.3g} ({reason}).",
        effect=effect,
        # The chance is a known number, so that the interval of the share is only shifted.
        interval=(low - chance, high - chance),
        words=f"{name} is right {side} {other} ({share:.3f} against {chance:.3f})",
    )


def ask_bias(name: str, rows: DataFrame, labels: Sequence[str]) -> Finding:
    """Test whether one of two labels is more frequent among predicted than among true classes."""
    parsed = rows[rows["predicted"].notna()]
    if len(parsed.drop_duplicates(["data_set", "item"])) < len(parsed):
        return _ask_bias_of_runs(name, parsed, labels)
    wrong = parsed[~is_right(parsed)]
    false_positive = int((wrong["predicted"] == labels[0]).sum())
    false_negative = len(wrong) - false_positive
    effect, ends = paired_difference(false_positive, false_negative, len(parsed))
    label = labels[0] if false_positive > false_negative else labels[1]
    words = f"{name} answers {label} more often than it is true"
    if false_positive == false_negative:
        words = f"{name} answers both labels as often as they are true"
    return Finding(
        question=f"Does {name} lean towards one label?",
        classifiers=[name],
        outcome=mcnemar(false_positive, false_negative),
        why=f"{false_positive} items are falsely {labels[0]} and {false_negative} falsely {labels[1]}: "
        f"{describe_discordant(false_positive + false_negative)}.",
        effect=effect,
        interval=ends,
        words=words,
    )


def _ask_bias_of_runs(name: str, parsed: DataFrame, labels: Sequence[str]) -> Finding:
    """Test for bias if an item has several rows, none of them unparsed."""
    claims, truth = (parsed[column] == labels[0] for column in ("predicted", "gold"))
    surplus = mean_by_item(claims.astype(float) - truth.astype(float), parsed).to_numpy()
    outcome = paired_permutation(surplus)
    effect = float(surplus.mean())
    label = labels[0] if effect > 0 else labels[1]
    words = f"{name} answers {label} more often than it is true"
    return Finding(
        question=f"Does {name} lean towards one label?",
        classifiers=[name],
        outcome=outcome,
        why=f"{len(surplus)} items with several runs or folds, which are averaged first.",
        effect=effect,
        interval=mean_interval(surplus),
        words=words if effect else f"{name} answers both labels as often as they are true",
    )


def ask_groups(name: str, rows: DataFrame, group: str) -> Finding | None:
    """Test whether a classifier is right equally often in all groups in a column; None for fewer than two."""
    rows = rows[rows[group] != ""]
    counted = is_right(rows).groupby(rows[group], sort=False).agg(["sum", "size"])
    if len(counted) < 2:
        return None
    several = len(rows.drop_duplicates(["data_set", "item"])) < len(rows)
    right = counted["sum"].to_numpy(int)
    table = np.stack([right, counted["size"].to_numpy() - right], axis=1)
    shares = right / table.sum(axis=1)
    best, worst = int(shares.argmax()), int(shares.argmin())
    words = (
        f"The shares of right answers of {name} range from {shares[worst]:.3f} ({counted.index[worst]}) to "
        f"{shares[best]:.3f} ({counted.index[best]})"
    )
    if shares[best] == shares[worst]:
        words = f"{name} is right equally often in all groups ({shares[best]:.3f})"
        # All shares are equal, so that both numbers name one group; the interval needs two.
        best, worst = 0, len(counted) - 1
    # The expected counts of a chi-squared test: row sum times column sum over the total.
    smallest = np.outer(table.sum(axis=1), table.sum(axis=0)).min() / table.sum()
    return Finding(
        question=f"Is {name} right equally often in all groups of {group}?",
        classifiers=[name],
        outcome=_compare_runs_of_groups(rows, group) if several else compare_groups(table.tolist()),
        why=f"{len(table)} groups; "
        + ("runs are averaged first." if several else f"the smallest expected count is {smallest:.3g}."),
        effect=float(shares[best] - shares[worst]),
        interval=independent_interval(table[best], table[worst]) if len(table) == 2 and not several else None,
        words=words,
    )


def _compare_runs_of_groups(rows: DataFrame, group: str) -> Outcome:
    """Compare groups by each item's share of right predictions, so that every item counts once."""
    shares = [mean_by_item(is_right(own), own).to_numpy() for _, own in rows.groupby(group, sort=False)]
    return compare_group_means(shares)


def describe_discordant(count: int) -> str:
    """Return a text such as "7 discordant items are below 25", the reason for a form of McNemar's test.

    In a test for bias, the false positives and the false negatives are discordant.
    """
    side = "below" if count < FEW_DISCORDANT else "at least"
    return f"{count} discordant items are {side} {FEW_DISCORDANT}"


def ask_degradation(
    name: str, validation: DataFrame, test: DataFrame, labels: Sequence[str], metric: str
) -> Finding:
    """Test whether a metric is worse on the parts of the test data than on those of the validation data."""
    found = [
        [
            strict_value(measure(own, labels, details=False, intervals=False), metric)
            for own in folds_and_sets(rows)
        ]
        for rows in (validation, test)
    ]
    folds, sets = (np.array([value for value in values if value is not None], float) for values in found)
    outcome, shapiro = compare_samples(folds, sets)
    effect = float(sets.mean() - folds.mean()) if len(folds) and len(sets) else None
    if effect and metric in LOWER_IS_BETTER:
        effect = -effect  # `strict_value` negates such a metric
    why = f"{len(folds)} validation folds and {len(sets)} test sets"
    if shapiro:
        why += f"; Shapiro's p is {format_p(shapiro[0])} and {format_p(shapiro[1])}."
    else:
        why += "; a test needs 3 of each."
    words = f"{metric} of {name} is not defined on both"
    if effect is not None:
        side = "lower" if effect < 0 else "higher"
        words = f"On test data, {metric} of {name} is {abs(effect):.3f} {side} than on validation data"
        words = words if effect else f"{metric} of {name} is the same on test and validation data"
    return Finding(
        question=f"Is {name} worse on test data than on validation data?",
        classifiers=[name],
        outcome=outcome,
        why=why,
        effect=effect,
        interval=_degradation_interval(validation, test, labels, metric),
        words=words,
        assumptions="Folds and test sets are independent; folds that share training data are not quite.",
    )


def _degradation_interval(
    validation: DataFrame, test: DataFrame, labels: Sequence[str], metric: str
) -> tuple[float, float] | None:
    """Compute a bootstrap interval of the mean on test data minus that on validation data.

    None if the metric cannot be computed from labels alone.
    """
    means: list[Floats] = []
    # The interval is as uncertain as the smaller of the two samples.
    fewest = min(len(rows.drop_duplicates(["data_set", "item"])) for rows in (test, validation))
    for rows in (test, validation):
        drawn = []
        for seed, own in enumerate(folds_and_sets(rows)):
            counts = count(*class_numbers(own, labels), len(labels))
            # Each part needs a seed of its own, or all parts would be resampled alike.
            values = bootstrap(counts, compute_metrics(labels), seed + len(means)).get(metric)
            if values is None:
                return None
            drawn.append(values)
        means.append(np.mean(drawn, axis=0))
    return interval(means[0] - means[1], fewest)
