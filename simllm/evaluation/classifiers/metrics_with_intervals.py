"""Metrics of a classifier, computed from its predictions, with 95% intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from pandas import DataFrame

from simllm.array_types import Floats, Ints
from simllm.evaluation.classifiers.auc_and_average_precision import rank_classes, rank_two_classes
from simllm.evaluation.classifiers.classifier_calibration import Calibration, calibrate
from simllm.evaluation.classifiers.metric_estimate import Estimate, finite, make_estimate
from simllm.evaluation.classifiers.prediction_files import INVENTED
from simllm.stats import confusion_matrix_metrics
from simllm.stats.confusion_matrix_bootstrap import bootstrap, quantiles
from simllm.stats.proportion_intervals import wilson

_BINARY_STRICT = ("precision", "recall", "specificity", "accuracy", "f1", "f2", "mcc")
_PROPORTIONS = ("precision", "recall", "specificity", "accuracy")
LOWER_IS_BETTER = ("brier", "log_loss")


@dataclass(frozen=True)
class Performance:
    """The performance of a classifier on n rows (predictions).

    Attributes:
        n: The number of all rows, including rows in which the output of the classifier could not be parsed.
        unparsed: The number of outputs that could not be parsed.
        invented: The number of predicted labels that are no item's true class. With two classes, they count
            as unparsed, too.
        labels: The k classes. If there are two, the first one is the positive class.
        matrix: (k, k) counts of true classes (rows) and predicted classes (columns), without unparsed
            outputs.
        metrics: The value and interval of each metric, by name, without unparsed outputs.
        strict: The values of metrics if unparsed outputs count as wrong. Only metrics that are computed from
            labels alone are included. For two classes, kappa and balanced accuracy are left out.
        undefined: The names of metrics whose formula gives 0 / 0; their value in `metrics` is 0.
        per_class: A dict from each class to the metrics of this class against the rest, by the metric's name.
            It is empty with two classes.
        calibration: Under "positive" the calibration of P(positive), under "top" the calibration of the
            confidence in the predicted label. A key is missing if its calibration cannot be computed.
        other_side: The number of rows whose predicted label contradicts P(positive): the label is positive
            although P(positive) is below .5, or negative although it is above .5. None without P(positive).
        groups: A dict from the name of each column with groups, such as "language", to a second dict. The
            second dict maps each group to the performance on its rows.
        variants: A dict from each kind of rewritten items (variant) to the performance on its rows.
    """

    n: int
    unparsed: int
    labels: list[str]
    matrix: list[list[int]]
    metrics: dict[str, Estimate]
    strict: dict[str, float | None]
    undefined: list[str]
    per_class: dict[str, dict[str, float | None]]
    calibration: dict[str, Calibration] = field(default_factory=dict)
    other_side: int | None = None
    invented: int = 0
    groups: dict[str, dict[str, Performance]] = field(default_factory=dict)
    variants: dict[str, Performance] = field(default_factory=dict)


def measure(rows: DataFrame, labels: Sequence[str], bins: int = 10, details: bool = True) -> Performance:
    """Measure the performance of a classifier: its metrics, and the calibration of its probabilities.

    Args:
        rows: The predictions of the classifier: rows of the table `Predictions.rows`.
        labels: The classes. If there are two, the first one is the positive class.
        bins: The number of bins into which probabilities are grouped to measure the calibration.
        details: Whether to test if the calibration error is too large to be due to chance. The test takes
            time. There is no test with more than two classes.
    """
    gold, predicted = class_numbers(rows, labels)
    repeats = len(rows) / max(1, rows[["data_set", "item"]].drop_duplicates().shape[0])
    found = measure_counts(confusion_matrix_metrics.count(gold, predicted, len(labels)), labels, repeats)
    parsed = predicted < len(labels)
    metrics, per_class = dict(found.metrics), found.per_class
    if len(labels) == 2:
        metrics |= rank_two_classes(rows[parsed], gold[parsed], labels, repeats)
    else:
        more, areas = rank_classes(rows[parsed], gold[parsed], labels)
        metrics |= more
        if areas:
            per_class = {label: {**each, "auc": areas[label]} for label, each in per_class.items()}
    calibration, other_side = calibrate(rows[parsed], gold[parsed], predicted[parsed], labels, bins, details)
    return replace(
        found,
        metrics=metrics,
        per_class=per_class,
        calibration=calibration,
        other_side=other_side,
        invented=int(rows[INVENTED].sum()) if INVENTED in rows else 0,
    )


def class_numbers(rows: DataFrame, labels: Sequence[str]) -> tuple[Ints, Ints]:
    """Return the true class and the predicted class of each prediction, as indices.

    Args:
        rows: n predictions (rows of `Predictions.rows`).
        labels: The k classes.

    Returns:
        Two arrays: (n,) indices of the true classes in `labels`, and (n,) indices of the predicted classes.
        The index of a predicted class is k if the output could not be parsed.
    """
    number = {label: index for index, label in enumerate(labels)}
    predicted = rows["predicted"].map(number).fillna(len(labels))
    return rows["gold"].map(number).to_numpy(int), predicted.to_numpy(int)


def strict_value(found: Performance, metric: str) -> float | None:
    """Return the value of a metric for comparing classifiers, such that a higher value is always better.

    If lower values of the metric are better, its value is negated. If `found.strict` has the metric, the
    value is taken from there, and outputs that could not be parsed count as wrong. Otherwise, the value is
    taken from `found.metrics`, which leaves out these outputs.

    Args:
        found: The performance of a classifier.
        metric: The name of the metric.

    Returns:
        The value (higher is better); None if it is not defined.
    """
    value = (
        found.strict[metric] if metric in found.strict else found.metrics.get(metric, Estimate(None)).value
    )
    return -value if value is not None and metric in LOWER_IS_BETTER else value


def compute_metrics(labels: Sequence[str]) -> Callable[[Ints], dict[str, Floats]]:
    """Return the function that computes metrics from confusion matrices with the classes `labels`.

    The function is `binary_metrics` for two classes, and `multiclass_metrics` for more.
    """
    return (
        confusion_matrix_metrics.binary_metrics
        if len(labels) == 2
        else confusion_matrix_metrics.multiclass_metrics
    )


def measure_counts(counts: Ints, labels: Sequence[str], repeats: float = 1.0) -> Performance:
    """Measure the performance of a classifier from its confusion matrix.

    Args:
        counts: (k, k + 1) counts. Rows are true classes, columns predicted classes; the last column counts
            outputs from which no class could be read.
        labels: The k classes.
        repeats: The mean number of predictions per item. It is above 1 if the classifier was run several
            times. The 95% intervals of the metrics are then wider, because predictions for the same item are
            not independent.
    """
    parsed = confusion_matrix_metrics.without_unparsed(counts)
    is_binary, compute = len(labels) == 2, compute_metrics(labels)
    values = compute(parsed)
    items = round(parsed.sum() / repeats)
    drawn = bootstrap(parsed, compute, items=items) if parsed.sum() else {}
    ratios = confusion_matrix_metrics.binary_ratios(parsed) if is_binary else {}
    metrics = {}
    for name, value in values.items():
        if name not in _PROPORTIONS:
            low, high = quantiles(drawn[name], items) if drawn else (math.nan, math.nan)
        else:
            over = ratios.get(name, (np.trace(parsed), parsed.sum()))
            low, high = wilson(int(over[0]) / repeats, int(over[1]) / repeats)
        metrics[name] = make_estimate(float(value), low, high)
    strict = {name: finite(float(value)) for name, value in compute(counts).items()}
    each = {} if is_binary else confusion_matrix_metrics.class_metrics(parsed)
    per_class: dict[str, dict[str, float | None]] = {}
    for number, label in enumerate(labels if each else ()):
        per_class[label] = {name: float(column[number]) for name, column in each.items()}
    return Performance(
        n=int(counts.sum()),
        unparsed=int(counts[:, -1].sum()),
        labels=list(labels),
        matrix=counts[:, :-1].tolist(),
        metrics=metrics,
        strict={name: value for name, value in strict.items() if not is_binary or name in _BINARY_STRICT},
        undefined=_undefined(parsed, labels, ratios),
        per_class=per_class,
    )


def _undefined(parsed: Ints, labels: Sequence[str], ratios: confusion_matrix_metrics.Ratios) -> list[str]:
    """List the metrics whose formula gives 0 / 0.

    With two classes, the list has names such as "f1". With more classes, it has names such as "recall of
    bug", and possibly "mcc".

    Args:
        parsed: (k, k + 1) counts of true classes (rows) and predicted classes (columns). The last column, for
            unparsed outputs, is 0.
        labels: The k classes.
        ratios: With two classes, the numerator and denominator of each metric; not used with more classes.

    Returns:
        The names of the metrics.
    """
    if len(labels) == 2:
        return sorted(name for name, (_, denominator) in ratios.items() if not denominator)
    sums = {"precision": parsed[:, :-1].sum(axis=0), "recall": parsed.sum(axis=1)}
    found = [
        f"{name} of {label}"
        for name, each in sums.items()
        for label, n in zip(labels, each, strict=True)
        if not n
    ]
    return found + ["mcc"] * any((each > 0).sum() < 2 for each in sums.values())
