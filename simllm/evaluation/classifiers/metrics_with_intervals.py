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
        n: The number of all rows, including unparsed outputs.
        unparsed: The number of outputs from which no class could be read.
        labels: The k classes. If there are two, the first one is the positive class.
        matrix: (k, k) counts of true classes (rows) and predicted classes (columns), without unparsed
            outputs.
        metrics: The value and interval of each metric, without unparsed outputs.
        strict: The values of metrics if unparsed outputs count as wrong. Only metrics that are computed from
            labels alone are included. For two classes, kappa and balanced accuracy are left out.
        undefined: The metrics whose formula gives 0 / 0; their value in `metrics` is 0.
        per_class: For each class, its metrics against the rest; empty with two classes.
        calibration: Under "positive" the calibration of P(positive), under "top" that of the confidence in
            the predicted label. A key is missing if its calibration cannot be computed.
        other_side: The number of rows whose predicted label contradicts P(positive): the label is positive
            although P(positive) is below .5, or negative although it is above .5. None without P(positive).
        invented: The number of predicted labels that are no item's true class. With two classes, they count
            as unparsed, too.
        groups: For each column of groups, such as "language", the performance on each group.
        variants: The performance on each kind of rewritten items.
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
        rows: Rows of the table `Predictions.rows` of this classifier.
        labels: The classes. If there are two, the first one is the positive class.
        bins: The number of bins of the calibration.
        details: Whether to test, for two classes, if the calibration error is too large to be due to chance,
            which takes time.
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
    """Return the (n,) true and the (n,) predicted class numbers of n rows; k for an unparsed output."""
    number = {label: index for index, label in enumerate(labels)}
    predicted = rows["predicted"].map(number).fillna(len(labels))
    return rows["gold"].map(number).to_numpy(int), predicted.to_numpy(int)


def strict_value(found: Performance, metric: str) -> float | None:
    """Return the strict value of a metric, for comparing classifiers: higher is always better.

    A metric without a strict value, such as the AUC, leaves out unparsed outputs. None if it is not defined.
    """
    value = (
        found.strict[metric] if metric in found.strict else found.metrics.get(metric, Estimate(None)).value
    )
    return -value if value is not None and metric in LOWER_IS_BETTER else value


def compute_metrics(labels: Sequence[str]) -> Callable[[Ints], dict[str, Floats]]:
    """Return the function that computes metrics from confusion matrices with these classes."""
    return (
        confusion_matrix_metrics.binary_metrics
        if len(labels) == 2
        else confusion_matrix_metrics.multiclass_metrics
    )


def measure_counts(counts: Ints, labels: Sequence[str], repeats: float = 1.0) -> Performance:
    """Measure the performance of a classifier from its (k, k + 1) confusion matrix.

    Args:
        counts: A row for each true class, a column for each predicted class; the last column counts unparsed
            outputs.
        labels: The k classes.
        repeats: The mean number of predictions per item, above 1 with several runs. Intervals are then wider,
            because predictions for the same item are not independent.
    """
    parsed = confusion_matrix_metrics.without_unparsed(counts)
    is_binary, compute = len(labels) == 2, compute_metrics(labels)
    values = compute(parsed)
    # Predictions for one item are not independent: an interval over all of them would be too narrow.
    items = round(parsed.sum() / repeats)
    drawn = bootstrap(parsed, compute, items=items) if parsed.sum() else {}
    ratios = confusion_matrix_metrics.binary_ratios(parsed) if is_binary else {}
    metrics = {}
    for name, value in values.items():
        if name not in _PROPORTIONS:
            low, high = quantiles(drawn[name], items) if drawn else (math.nan, math.nan)
        else:
            # Accuracy of more than two classes has no entry in the ratios.
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
    """List the metrics that are 0 / 0, such as "f1", or with more than two classes "recall of bug".

    `parsed` (k, k + 1) is a confusion matrix without unparsed outputs.
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
