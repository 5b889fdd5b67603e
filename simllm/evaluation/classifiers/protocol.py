"""The protocol ECSER-LLM: all results of a study of classifiers, from data leaks to significance tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from pandas import DataFrame

from simllm.errors import InputError
from simllm.evaluation.classifiers import groups as side
from simllm.evaluation.classifiers import significance as one
from simllm.evaluation.classifiers.comparison import ITEM, compare_auc, compare_classifiers, compare_metric
from simllm.evaluation.classifiers.labels import choose_classes, remove_invented_labels
from simllm.evaluation.classifiers.metrics import (
    Performance,
    mean_metrics,
    measure,
    measure_counts,
    spread_of,
    strict_value,
)
from simllm.evaluation.classifiers.predictions import (
    COSTS,
    SPLITS,
    Predictions,
    check_probabilities,
)
from simllm.evaluation.classifiers.significance import Answer, answer

MOST_NAMED = 20  # leaked items that the results of a study name
_MOST_COUNTS, _MOST_BINS = 10**9, 1000


def find_leaks(rows: DataFrame) -> list[str]:
    """Return the items that a classifier has in two splits of one fold: ids, or A/17 in data set A."""
    # In different folds of a cross-validation, an item is in different splits on purpose.
    keys = ["classifier", "fold", *ITEM]
    counted = rows[rows["variant"] == ""].groupby(keys, sort=False)["split"].nunique()
    several = rows["data_set"].nunique() > 1
    leaked = dict.fromkeys(key[-2:] for key in counted[counted > 1].index)
    return [f"{data_set}/{item}" if several else str(item) for data_set, item in leaked]


def measure_costs(rows: DataFrame) -> dict[str, dict[str, float | None]]:
    """Compute the sum, the mean and the sum per right prediction of each cost that one classifier reports.

    Rows without a value are left out. "per right answer" is None if no prediction is right.
    """
    found: dict[str, dict[str, float | None]] = {}
    for name in COSTS:
        if rows[name].notna().any():
            total = float(rows[name].sum())
            # Right answers without a reported cost would make the others look cheaper.
            known = rows[rows[name].notna()]
            right = int((known["predicted"] == known["gold"]).sum())
            found[name] = {
                "sum": total,
                "per item": float(rows[name].mean()),
                "per right answer": total / right if right else None,
            }
    return found


def find_dominated(
    quality: dict[str, float | None], costs: dict[str, dict[str, dict[str, float | None]]]
) -> dict[str, list[str]]:
    """Map each dominated classifier to those that dominate it; a higher `quality` is better.

    `costs` has for each classifier the result of `measure_costs`.
    """
    found: dict[str, list[str]] = {}
    for a, b in ((a, b) for a in costs for b in costs if a != b):
        if costs[a].keys() != costs[b].keys():
            continue  # a cost that is not reported is unknown
        pairs = [(costs[a][name]["per item"] or 0.0, costs[b][name]["per item"] or 0.0) for name in costs[a]]
        mine, other = quality[a], quality[b]
        if pairs and mine is not None and other is not None:
            # Less of these costs is better, too.
            pairs.append((-mine, -other))
            if all(x >= y for x, y in pairs) and any(x > y for x, y in pairs):
                found.setdefault(a, []).append(b)
    return found


def differences(first: dict[str, float], second: dict[str, float]) -> dict[str, float]:
    """Return, for each metric in both dicts, its value in `first` minus its value in `second`."""
    return {name: value - second[name] for name, value in first.items() if name in second}


@dataclass(frozen=True)
class ClassifierResult:
    """The results of one classifier in a study.

    Fairness, robustness and costs are computed on test data; without test data, on validation data; without
    either, on training data.

    Attributes:
        splits: The performance on the original items of each split.
        fairness: For each column of groups, the differences between the groups' rates; empty with more than
            two classes.
        robustness: The comparison of variants with the original items.
        overfitting: For each metric, its value on test data minus its value on training data. Both are means
            over folds and data sets.
        degradation: For each metric, its value on test data minus its value on validation data, as means,
            too.
        costs: For each reported cost, such as "seconds": its sum, its mean per prediction, and its sum
            divided by the number of right predictions.
        dominated_by: The classifiers that are better or cheaper, and neither worse nor more expensive.
    """

    splits: dict[str, Performance]
    fairness: dict[str, side.Fairness] = field(default_factory=dict)
    robustness: side.Robustness = field(default_factory=side.Robustness)
    overfitting: dict[str, float] = field(default_factory=dict)
    degradation: dict[str, float] = field(default_factory=dict)
    costs: dict[str, dict[str, float | None]] = field(default_factory=dict)
    dominated_by: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class ClassifierStudy:
    """The results of a study of classifiers.

    Attributes:
        labels: The classes; of two, the first is the positive one.
        selected: The classifier with the best `select_by` on validation data; None without validation data.
        leaked: At most 20 items that are in two splits of the same fold, such as train and test.
        leaks: The number of all such items.
        invented: How often each label was predicted that is no item's true class. With exactly two true
            classes, these predictions count as unparsed.
        published: The classifiers that are known only by the counts of a confusion matrix.
        predictions: The predictions, for the curves in the report.
    """

    classifiers: dict[str, ClassifierResult]
    labels: list[str]
    tests: list[Answer]
    selected: str | None
    select_by: str
    leaked: list[str]
    leaks: int
    invented: dict[str, int]
    published: list[str]
    predictions: Predictions


def evaluate(
    predictions: Predictions,
    positive: str | None = None,
    groups: Sequence[str] = (),
    select_by: str = "mcc",
    alpha: float = 0.05,
    bins: int = 10,
    matrices: Mapping[str, Sequence[int]] | None = None,
) -> ClassifierStudy:
    """Evaluate one or more classifiers by the protocol ECSER-LLM.

    Args:
        predictions: The predictions.
        positive: The positive class. With two classes, it is required, unless they are 0 and 1: then it is 1.
            With more classes, a positive class merges all others into one negative class.
        groups: The columns, such as "language", between whose groups of items fairness is measured.
        select_by: The metric that selects the best classifier, and that is compared between classifiers, and
            between validation and test data.
        alpha: The significance level, between 0 and 1.
        bins: The number of bins for calibration, from 1 to 1,000.
        matrices: Further classifiers without predictions: their numbers of true positives, false positives,
            false negatives and true negatives.

    Raises:
        InputError: An argument or a column is wrong.
    """
    if not 0 < alpha < 1:
        raise InputError(f"alpha {alpha}: expected a number between 0 and 1")
    if not 1 <= bins <= _MOST_BINS:
        raise InputError(f"{bins} bins: expected from 1 to {_MOST_BINS:,}")
    check_probabilities(predictions.rows)
    rows, invented = remove_invented_labels(predictions.rows)
    rows, labels = choose_classes(rows, positive)
    rows = side.fill_groups(rows, groups)
    results = {
        str(name): _measure_classifier(own, labels, groups, bins)
        for name, own in rows.groupby("classifier", sort=False)
    }
    # Whether a metric exists is known only now: it depends on the classes and on the probabilities.
    _check_metric(select_by, results)
    # Before the matrices, which have no costs.
    results = _add_dominated(results, select_by)
    tests = _ask_all(rows, labels, groups, select_by, alpha)
    for name, cells in (matrices or {}).items():
        if name in results:
            raise InputError(f"the matrix {name} has the name of a classifier")
        results[name] = ClassifierResult({"test": _measure_matrix(name, cells, labels)})
    on_validation = {
        name: strict_value(found.splits["validation"], select_by)
        for name, found in results.items()
        if "validation" in found.splits
    }
    known = {name: value for name, value in on_validation.items() if value is not None}
    leaked = find_leaks(rows)
    return ClassifierStudy(
        classifiers=results,
        labels=labels,
        tests=tests,
        selected=max(known, key=known.__getitem__) if known else None,
        select_by=select_by,
        leaked=leaked[:MOST_NAMED],
        leaks=len(leaked),
        invented=invented,
        published=list(matrices or {}),
        predictions=replace(predictions, rows=rows),
    )


def _check_metric(name: str, results: Mapping[str, ClassifierResult]) -> None:
    splits = [split for found in results.values() for split in found.splits.values()]
    known = dict.fromkeys(metric for split in splits for metric in split.metrics)
    if name not in known:
        raise InputError(f"unknown metric {name}; known: {', '.join(known)}")
    for label, found in results.items():
        if any(name not in split.metrics for split in found.splits.values()):
            raise InputError(f"{label} has no {name}, because it reports no probabilities of all classes")


def _measure_classifier(
    rows: DataFrame, labels: Sequence[str], groups: Sequence[str], bins: int
) -> ClassifierResult:
    """Compute the results of one classifier from its rows, all but `dominated_by`."""
    by_split = {split: own for split in SPLITS if len(own := rows[rows["split"] == split])}
    splits = {}
    for split, own in by_split.items():
        original = own[own["variant"] == ""]
        variants = {
            str(name): measure(part, labels, bins)
            for name, part in own[own["variant"] != ""].groupby("variant", sort=False)
        }
        by_group = {
            group: {
                str(value): measure(part, labels, bins, details=False)
                for value, part in original[original[group] != ""].groupby(group, sort=False)
            }
            for group in groups
        }
        splits[split] = replace(
            measure(original, labels, bins),
            groups=by_group,
            variants=variants,
            spread=spread_of(own, labels),
        )
    # Each fold and data set counts alike here, unlike in the pooled values above.
    means = {split: mean_metrics(own[own["variant"] == ""], labels) for split, own in by_split.items()}
    overfitting, degradation = (
        differences(means["test"], means[other]) if {"test", other} <= means.keys() else {}
        for other in ("train", "validation")
    )
    main = by_split[main_split(by_split)]
    original = main[main["variant"] == ""]
    is_binary = len(labels) == 2
    return ClassifierResult(
        splits,
        {group: side.measure_fairness(original, group, labels[0]) for group in groups if is_binary},
        side.measure_robustness(main, labels),
        overfitting,
        degradation,
        measure_costs(original),
    )


def main_split(splits: Mapping[str, object]) -> str:
    """Return the split for which fairness, robustness and costs are reported: test, validation or train."""
    return next(split for split in ("test", "validation", "train") if split in splits)


def _add_dominated(results: dict[str, ClassifierResult], metric: str) -> dict[str, ClassifierResult]:
    quality = {
        name: strict_value(found.splits[main_split(found.splits)], metric) for name, found in results.items()
    }
    dominated = find_dominated(quality, {name: found.costs for name, found in results.items()})
    return {name: replace(found, dominated_by=dominated.get(name, [])) for name, found in results.items()}


def _measure_matrix(name: str, cells: Sequence[int], labels: Sequence[str]) -> Performance:
    """Measure a classifier from its numbers of true and false positives, false and true negatives."""
    if len(labels) != 2:
        raise InputError(f"the matrix {name} needs two classes, but the rows have {len(labels)}")
    if len(cells) != 4 or min(cells) < 0 or not 0 < sum(cells) <= _MOST_COUNTS:
        raise InputError(f"the matrix {name}: expected four counts from 0, TP,FP,FN,TN")
    tp, fp, fn, tn = cells
    # The last column is for unparsed outputs, which published counts do not have.
    return measure_counts(np.array([[tp, fn, 0], [fp, tn, 0]]), labels)


def _ask_all(
    rows: DataFrame, labels: Sequence[str], groups: Sequence[str], metric: str, alpha: float
) -> list[Answer]:
    """Carry out all significance tests: on validation data, on test data, and between the two."""
    answers: list[Answer] = []
    original = rows[rows["variant"] == ""]
    # Of all splits: a guess does not know which classes a split lacks.
    classes = original["gold"].nunique()
    for split in ("validation", "test"):
        own = original[original["split"] == split]
        if own.empty:
            continue
        each = {str(name): part for name, part in own.groupby("classifier", sort=False)}
        if own["gold"].nunique() > 1:  # otherwise, a constant answer is always right
            chance = [one.ask_guessing(name, part, classes) for name, part in each.items()]
            largest = [one.ask_largest_class(name, part) for name, part in each.items()]
            answers += [*answer(chance, split, alpha), *answer(largest, split, alpha)]
        if len(labels) == 2:
            answers += answer([one.ask_bias(name, part, labels) for name, part in each.items()], split, alpha)
        if len(each) > 1:
            answers += compare_classifiers(own, labels, metric, split, alpha)
            answers += answer(compare_metric(own, labels, metric), split, alpha)
            if len(labels) == 2:
                answers += answer(compare_auc(own, labels), split, alpha)
        for group in groups:
            found = [one.ask_groups(name, part, group) for name, part in each.items()]
            answers += answer([finding for finding in found if finding], split, alpha)
    steps = []
    for name, own in original.groupby("classifier", sort=False):
        # Without unparsed outputs, so that strict values are about labels alone.
        parsed = own[own["predicted"].notna()]
        validation, test = (parsed[parsed["split"] == split] for split in ("validation", "test"))
        if len(validation) and len(test):
            steps.append(one.ask_degradation(str(name), validation, test, labels, metric))
    return answers + answer(steps, "validation and test", alpha)
