"""The protocol ECSER-LLM for studies of classifiers (R. van der Zeijden, "Enhancing the ECSER pipeline").

Steps S1 to S5 prepare a study. S6 and S7 measure performance. S8 examines calibration, fairness, robustness
and costs, and S9 overfitting and degradation. S10 draws curves, and S11 tests for significance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from pandas import DataFrame

from simllm.errors import InputError
from simllm.evaluation.classifiers import fairness_and_robustness as side
from simllm.evaluation.classifiers import single_classifier_tests as one
from simllm.evaluation.classifiers.classifier_comparison import (
    compare_auc,
    compare_classifiers,
    compare_metric,
)
from simllm.evaluation.classifiers.data_leaks import MOST_NAMED, find_leaks
from simllm.evaluation.classifiers.metrics_with_intervals import (
    Performance,
    measure,
    measure_counts,
    strict_value,
)
from simllm.evaluation.classifiers.overfitting_and_degradation import (
    ask_degradation,
    differences,
    mean_metrics,
)
from simllm.evaluation.classifiers.positive_and_invented_labels import choose_classes, remove_invented_labels
from simllm.evaluation.classifiers.prediction_costs import find_dominated, measure_costs
from simllm.evaluation.classifiers.prediction_files import SPLITS, Predictions, check_probabilities
from simllm.evaluation.classifiers.significance_verdicts import Answer, answer

_MOST_COUNTS, _MOST_BINS = 10**9, 1000


@dataclass(frozen=True)
class ClassifierResult:
    """The results of one classifier in a study.

    Attributes:
        splits: For each split, such as "test", the performance on original items (rewritten items are
            left out).
        fairness: A dict from each column that divides the items into groups, such as "language", to the
            differences between the groups' rates, such as the TPR; empty with more than two classes.
        robustness: The comparison of the predictions for rewritten items with the predictions for the
            original items.
        overfitting: For each metric, its value on test data minus its value on training data. Both values are
            means over all folds and data sets.
        degradation: For each metric, its value on test data minus its value on validation data. Both values
            are means over all folds and data sets.
        costs: For each reported cost, such as "seconds": its sum, its mean per prediction, and its sum
            divided by the number of right predictions.
        dominated_by: The names of the classifiers that dominate this classifier: they are better or cheaper
            than this classifier, but neither worse nor more expensive.

    Fairness, robustness and costs are computed on the test data. If there are no test data, they are computed
    on the validation data; if there are no validation data either, on the training data.
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
        classifiers: The results of each classifier, by name.
        labels: The classes. If there are two, the first one is the positive class.
        tests: The results of all significance tests. Each test answers a question, such as whether one
            classifier is right more often than another.
        selected: The name of the classifier with the best value of the metric `select_by` on validation data;
            None without validation data.
        select_by: The name of the metric that selects the best classifier.
        leaked: The names of leaked items: items that are in two splits, such as train and test, of the same
            fold. At most 20 names are given.
        leaks: The number of all leaked items.
        invented: A dict from each invented label (a predicted label that is not the true class of any item)
            to the number of predictions with this label. If the items have exactly two true classes, these
            predictions are treated as outputs that could not be parsed.
        published: The names of the classifiers that are known only by the counts of a confusion matrix.
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
        positive: The positive class. With two classes, it is required, unless the classes are 0 and 1: then
            the default is 1. With more classes, it is optional; if it is given, all other classes are merged
            into one negative class.
        groups: The names of the columns that divide the items into groups, such as "language". Fairness is
            measured between these groups.
        select_by: The name of the metric that selects the best classifier. The same metric is used to
            compare classifiers with each other, and to compare validation data with test data.
        alpha: The significance level.
        bins: The number of bins for calibration.
        matrices: The confusion matrices of further classifiers, whose predictions are not known: a dict
            from the name of each classifier to its numbers of true positives, false positives, false
            negatives and true negatives.

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
    _check_metric(select_by, results)
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
        predictions=Predictions(rows, predictions.spelling),
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
    """Compute the results of one classifier.

    The attribute `dominated_by` of the result is empty. It can be filled only when the results of all
    classifiers are known.

    Args:
        rows: The predictions of the classifier: a table with a row for each prediction.
        labels: The classes. If there are two, the first one is the positive class.
        groups: The names of the columns that divide the items into groups, such as "language".
        bins: The number of bins for calibration.
    """
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
        splits[split] = replace(measure(original, labels, bins), groups=by_group, variants=variants)
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
    """Return the split for which fairness, robustness and costs are reported.

    This split is "test" if `splits` has it, otherwise "validation", otherwise "train".
    """
    return next(split for split in ("test", "validation", "train") if split in splits)


def _add_dominated(results: dict[str, ClassifierResult], metric: str) -> dict[str, ClassifierResult]:
    quality = {
        name: strict_value(found.splits[main_split(found.splits)], metric) for name, found in results.items()
    }
    dominated = find_dominated(quality, {name: found.costs for name, found in results.items()})
    return {name: replace(found, dominated_by=dominated.get(name, [])) for name, found in results.items()}


def _measure_matrix(name: str, cells: Sequence[int], labels: Sequence[str]) -> Performance:
    """Measure a classifier that is known only by the four counts of its confusion matrix.

    Args:
        name: The name of the classifier, for errors.
        cells: The numbers of true positives, false positives, false negatives and true negatives.
        labels: The two classes. The first one is the positive class.

    Raises:
        InputError: There are not exactly two classes, or the four counts are wrong.
    """
    if len(labels) != 2:
        raise InputError(f"the matrix {name} needs two classes, but the rows have {len(labels)}")
    if len(cells) != 4 or min(cells) < 0 or not 0 < sum(cells) <= _MOST_COUNTS:
        raise InputError(f"the matrix {name}: expected four counts from 0, TP,FP,FN,TN")
    tp, fp, fn, tn = cells
    return measure_counts(np.array([[tp, fn, 0], [fp, tn, 0]]), labels)


def _ask_all(
    rows: DataFrame, labels: Sequence[str], groups: Sequence[str], metric: str, alpha: float
) -> list[Answer]:
    """Carry out all significance tests of a study of classifiers.

    Each test answers a question, such as whether a classifier is better than guessing. The tests are carried
    out on the validation data, and again on the test data. The last tests use both: they test whether a
    classifier is worse on test data than on validation data.

    Args:
        rows: The predictions of all classifiers: a table with a row for each prediction.
        labels: The classes. If there are two, the first one is the positive class.
        groups: The names of the columns that divide the items into groups, such as "language".
        metric: The name of the metric that is compared between two classifiers, and between the validation
            data and the test data of one classifier.
        alpha: The significance level.
    """
    answers: list[Answer] = []
    original = rows[rows["variant"] == ""]
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
        parsed = own[own["predicted"].notna()]
        validation, test = (parsed[parsed["split"] == split] for split in ("validation", "test"))
        if len(validation) and len(test):
            steps.append(ask_degradation(str(name), validation, test, labels, metric))
    return answers + answer(steps, "validation and test", alpha)
