"""Performance of one classifier: metrics with intervals, and the calibration of its probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from pandas import DataFrame

from simllm.array_types import Floats, Ints
from simllm.evaluation.classifiers.labels import INVENTED
from simllm.evaluation.classifiers.predictions import chances_of, positive_scores
from simllm.io import tables
from simllm.stats import classification
from simllm.stats.calibration import Bin, brier_score, calibration_errors, consistency, log_loss, reliability
from simllm.stats.classification import area_under_roc, auc_interval, bootstrap
from simllm.stats.intervals import Spread, measure_spread, wilson
from simllm.stats.resampling import interval

_BINARY_STRICT = ("precision", "recall", "specificity", "accuracy", "f1", "f2", "mcc")
_PROPORTIONS = ("precision", "recall", "specificity", "accuracy")
LOWER_IS_BETTER = ("brier", "log_loss")


@dataclass(frozen=True)
class Estimate:
    """The value of a metric with its 95% interval. Numbers that are not defined, such as 0 / 0, are None."""

    value: float | None
    low: float | None = None
    high: float | None = None


def make_estimate(value: float, low: float = math.nan, high: float = math.nan) -> Estimate:
    """Make an estimate from numbers of which NaN becomes None."""
    return Estimate(*tables.finite([value, low, high]))


def rank_two_classes(
    rows: DataFrame, gold: Ints, labels: Sequence[str], repeats: float
) -> dict[str, Estimate]:
    """Compute "auc" and "average_precision" from the scores for the positive class (see `positive_scores`).

    `rows` has no unparsed outputs; `gold` (n,) are the true class numbers. Both values are None if no row has
    a score, or if all rows with scores have the same true class.
    """
    from sklearn.metrics import average_precision_score

    scores, _ = positive_scores(rows, labels[0], labels)
    known = ~np.isnan(scores)
    positive = gold[known] == 0
    if not 0 < positive.sum() < len(positive):
        return {"auc": Estimate(None), "average_precision": Estimate(None)}
    folds = rows.loc[known, "fold"].to_numpy()
    precision = float(average_precision_score(positive, scores[known]))
    return {
        "auc": make_estimate(*auc_interval(positive, scores[known], folds, repeats)),
        "average_precision": Estimate(precision),
    }


def rank_classes(
    rows: DataFrame, gold: Ints, labels: Sequence[str]
) -> tuple[dict[str, Estimate], dict[str, float | None]]:
    """Compute the metrics that need a probability for each of three or more classes.

    `rows` has no unparsed outputs; `gold` (n,) are the true class numbers. The second dict has the AUC of
    each class against the rest. Both dicts are empty if no row has probabilities.
    """
    from sklearn.metrics import roc_auc_score

    chances = chances_of(rows, labels)
    if chances is None:
        return {}, {}
    table = chances.to_numpy(float)
    known = ~np.isnan(table).any(axis=1)
    table, gold = table[known], gold[known]
    areas = {}
    for number, label in enumerate(labels):
        own = gold == number
        chance = table[:, number]
        area = area_under_roc(chance[own], chance[~own]) if 0 < own.sum() < len(own) else math.nan
        areas[label] = tables.finite(area)
    present = [area for area in areas.values() if area is not None]
    metrics = {"macro_auc": Estimate(float(np.mean(present)) if present else None)}
    # An AUC over pairs is not defined if a class has no item.
    if len(present) == len(labels):
        # scikit-learn refuses rows that do not add up to 1; ours may be rounded.
        pairs = roc_auc_score(gold, table / table.sum(axis=1, keepdims=True), multi_class="ovo")
        metrics["macro_auc_one_vs_one"] = Estimate(float(pairs))
    metrics["brier"] = Estimate(brier_score(table, np.eye(len(labels))[gold]))
    metrics["log_loss"] = Estimate(log_loss(table[np.arange(len(gold)), gold]))
    return metrics, areas


@dataclass(frozen=True)
class Calibration:
    """The calibration of probabilities of the positive class, or of confidences in the predicted labels.

    Attributes:
        ece: The expected calibration error: the mean gap between probability and frequency over bins of
            equal width, weighted by the number of predictions in a bin.
        mce: The largest gap in these bins.
        ece_equal_mass: The expected calibration error in bins of about equally many predictions.
        mce_equal_mass: The largest gap in the bins of about equally many predictions.
        bins: The bins of equal width.
        brier: None for confidences.
        log_loss: None for confidences.
        expected_if_calibrated: The ECE that a calibrated classifier would have by chance (see `consistency`);
            None if it was not computed.
        p: The p-value of `ece`; None if it was not computed.
    """

    ece: float
    mce: float
    ece_equal_mass: float
    mce_equal_mass: float
    bins: list[Bin]
    brier: float | None = None
    log_loss: float | None = None
    expected_if_calibrated: float | None = None
    p: float | None = None


def calibrate(
    rows: DataFrame,
    gold: Ints,
    predicted: Ints,
    labels: Sequence[str],
    bins: int,
    details: bool,
) -> tuple[dict[str, Calibration], int | None]:
    """Measure the calibration of n rows without unparsed outputs, from (n,) class numbers.

    "positive" is the calibration of P(positive), for two classes; "top" that of the confidence in the
    predicted class. `details` adds the test by `consistency` to "positive". The second value counts the rows
    whose label contradicts P(positive), as "positive" below .5; None without P(positive).
    """
    found: dict[str, Calibration] = {}
    other_side = None
    right = (gold == predicted).astype(float)
    if len(labels) == 2:
        chance, are_chances = positive_scores(rows, labels[0], labels)
        known = ~np.isnan(chance)
        if not are_chances or not known.any():
            return {}, None
        chance, claims = chance[known], predicted[known] == 0
        positive = (gold[known] == 0).astype(float)
        found["positive"] = _measure(chance, positive, bins, is_positive=True, details=details)
        found["top"] = _measure(np.where(claims, chance, 1 - chance), right[known], bins)
        other_side = int((((chance > 0.5) & ~claims) | ((chance < 0.5) & claims)).sum())
    else:
        confidence = rows["confidence"].to_numpy(float)
        chances = chances_of(rows, labels)
        if chances is not None:
            own = chances.to_numpy(float)[np.arange(len(rows)), predicted]
            # A row has either a confidence or probabilities of all classes.
            confidence = np.where(np.isnan(confidence), own, confidence)
        known = ~np.isnan(confidence)
        if known.any():
            found["top"] = _measure(confidence[known], right[known], bins)
    return found, other_side


def _measure(
    chance: Floats, label: Floats, bins: int, is_positive: bool = False, details: bool = False
) -> Calibration:
    """Measure the calibration of (n,) probabilities by (n,) labels, 0 or 1."""
    diagram = reliability(chance, label, bins)
    equal = calibration_errors(reliability(chance, label, bins, equal_mass=True))
    more: Mapping[str, Any] = {}
    if is_positive:
        true = np.where(label == 1, chance, 1 - chance)
        more = {"brier": brier_score(chance, label), "log_loss": log_loss(true)}
    if details:
        expected, p = consistency(chance, label, bins)
        more = {**more, "expected_if_calibrated": expected, "p": p}
    return Calibration(*calibration_errors(diagram), *equal, diagram, **more)


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
        spread: For "fold", "run" and "variant", if there are two or more: the spread of each metric over
            them (see `spread_of`).
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
    spread: dict[str, dict[str, Spread]] = field(default_factory=dict)


def measure(
    rows: DataFrame,
    labels: Sequence[str],
    bins: int = 10,
    details: bool = True,
    intervals: bool = True,
) -> Performance:
    """Measure the performance of a classifier: its metrics, and the calibration of its probabilities.

    Args:
        rows: Rows of the table `Predictions.rows` of this classifier.
        labels: The classes. If there are two, the first one is the positive class.
        bins: The number of bins of the calibration.
        details: Whether to test, for two classes, if the calibration error is too large to be due to chance,
            which takes time.
        intervals: Whether to draw bootstrap intervals, which takes time, too.
    """
    gold, predicted = class_numbers(rows, labels)
    repeats = len(rows) / max(1, rows[["data_set", "item"]].drop_duplicates().shape[0])
    found = measure_counts(classification.count(gold, predicted, len(labels)), labels, repeats, intervals)
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
    return classification.binary_metrics if len(labels) == 2 else classification.multiclass_metrics


def measure_counts(
    counts: Ints, labels: Sequence[str], repeats: float = 1.0, intervals: bool = True
) -> Performance:
    """Measure the performance of a classifier from its (k, k + 1) confusion matrix.

    Args:
        counts: A row for each true class, a column for each predicted class; the last column counts unparsed
            outputs.
        labels: The k classes.
        repeats: The mean number of predictions per item, above 1 with several runs. Intervals are then wider,
            because predictions for the same item are not independent.
        intervals: Whether to draw bootstrap intervals.
    """
    parsed = classification.without_unparsed(counts)
    is_binary, compute = len(labels) == 2, compute_metrics(labels)
    values = compute(parsed)
    # Predictions for one item are not independent: an interval over all of them would be too narrow.
    items = round(parsed.sum() / repeats)
    drawn = bootstrap(parsed, compute, items=items) if intervals and parsed.sum() else {}
    ratios = classification.binary_ratios(parsed) if is_binary else {}
    metrics = {}
    for name, value in values.items():
        if name not in _PROPORTIONS:
            low, high = interval(drawn[name], items) if drawn else (math.nan, math.nan)
        else:
            # Accuracy of more than two classes has no entry in the ratios.
            over = ratios.get(name, (np.trace(parsed), parsed.sum()))
            low, high = wilson(int(over[0]) / repeats, int(over[1]) / repeats)
        metrics[name] = make_estimate(float(value), low, high)
    strict = {name: tables.finite(float(value)) for name, value in compute(counts).items()}
    each = {} if is_binary else classification.class_metrics(parsed)
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


def _undefined(parsed: Ints, labels: Sequence[str], ratios: classification.Ratios) -> list[str]:
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


def mean_metrics(rows: DataFrame, labels: Sequence[str]) -> dict[str, float]:
    """Compute the mean of each metric over the parts of a split, without metrics undefined for any part."""
    parts = [measure(own, labels, details=False, intervals=False) for own in folds_and_sets(rows)]
    names = [name for name in parts[0].metrics if all(name in part.metrics for part in parts)]
    return {name: value for name in names if (value := _mean_of(parts, name)) is not None}


def folds_and_sets(rows: DataFrame) -> list[DataFrame]:
    """Split a table of predictions into its parts."""
    return [own for _, own in rows.groupby(["fold", "data_set"], sort=False)]


def _mean_of(parts: Sequence[Performance], name: str) -> float | None:
    """Average a metric over parts; None if one is undefined."""
    values = [part.metrics[name].value for part in parts]
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if len(known) == len(values) else None


def spread_of(rows: DataFrame, labels: Sequence[str]) -> dict[str, dict[str, Spread]]:
    """Measure the spread of each metric over the folds, the runs and the variants of a split.

    The values are those of the metrics, without unparsed outputs. The original is one of the variants, which
    are compared on the items that all of them have. A metric that is not defined for a part is left out.
    """
    original, found = rows[rows["variant"] == ""], {}
    # Items that only some variants have would make these look better or worse.
    keys = ["fold", "data_set", "run", "item"]
    number = rows.groupby(keys)["variant"].transform("nunique")
    common = rows[number == rows["variant"].nunique()]
    named = [(column, original[original[column] != ""]) for column in ("fold", "run")]
    for column, own in (*named, ("variant", common)):
        if own[column].nunique() < 2:
            continue
        parts = [
            measure(part, labels, details=False, intervals=False)
            for _, part in own.groupby(column, sort=False)
        ]
        values = {
            name: [part.metrics[name].value for part in parts]
            for name in parts[0].metrics
            if all(name in part.metrics and name not in part.undefined for part in parts)
        }
        known = {name: [one for one in each if one is not None] for name, each in values.items()}
        found[column] = {
            name: measure_spread(each) for name, each in known.items() if len(each) == len(parts)
        }
    return found
