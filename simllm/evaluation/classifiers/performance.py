"""The performance of a classifier on a set of rows: metrics with intervals, and calibration."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame

from simllm.evaluation.classifiers.predictions import chances_of
from simllm.stats import classification
from simllm.stats.probability_calibration import Bin, calibration_errors, consistency, reliability
from simllm.stats.roc_curve import auc_interval, auc_with_covariance

Floats = NDArray[np.float64]
Ints = NDArray[np.int_]
_BINARY_STRICT = ("precision", "recall", "specificity", "accuracy", "f1", "f2", "mcc")
_PROPORTIONS = ("precision", "recall", "specificity", "accuracy")
LOWER_IS_BETTER = ("brier", "log_loss")
Z = 1.959963984540054  # half the width of a 95% interval, in standard errors
_LEAST = 1e-15  # probabilities in the log loss


@dataclass(frozen=True)
class Estimate:
    """A metric with its 95% interval; None if it is not defined."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Calibration:
    """Agreement of probabilities with frequencies.

    Attributes:
        ece: The expected calibration error, in bins of equal width.
        mce: The largest gap in these bins.
        ece_equal_mass: The expected calibration error in bins of about equally many predictions.
        mce_equal_mass: The largest gap in those.
        bins: The bins of equal width.
        brier: The mean squared error of probabilities of the positive class; None for other probabilities.
        log_loss: Their mean negative log-likelihood, in nats.
        expected_if_calibrated: The mean ECE of labels that are drawn from the probabilities.
        p: The share of such draws with an ECE as large as that of the data.
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


@dataclass(frozen=True)
class Performance:
    """The figures of a classifier on n rows.

    Attributes:
        n: The number of rows.
        unparsed: The number of outputs that could not be parsed.
        labels: The k classes; with two classes, the positive one is the first.
        matrix: (k, k) counts of true classes (rows) and predicted classes, without unparsed outputs.
        metrics: For each metric, its value and interval over parsed rows.
        strict: For each metric of labels, its value if an unparsed output is a wrong answer.
        undefined: The metrics that are 0 / 0 and therefore 0.
        per_class: With three or more classes, the metrics of each class against the rest.
        calibration: Under "positive" that of P(positive), under "top" that of the confidence in the predicted
            label. A key is missing if it cannot be computed.
        other_side: The number of rows whose P(positive) is on the other side of .5 than their label.
        groups: For each group column, for each of its values, the performance on these rows.
        variants: For each variant of the items, the performance on its rows.
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
    groups: dict[str, dict[str, Performance]] = field(default_factory=dict)
    variants: dict[str, Performance] = field(default_factory=dict)


def measure(rows: DataFrame, labels: Sequence[str], bins: int = 10, details: bool = True) -> Performance:
    """Measure a classifier on some rows.

    Args:
        rows: Rows of `Predictions`.
        labels: The classes; with two, the positive one is the first.
        bins: The number of bins for calibration.
        details: Whether to test calibration by drawing labels.
    """
    gold, predicted = class_numbers(rows, labels)
    repeats = len(rows) / max(1, rows[["data_set", "item"]].drop_duplicates().shape[0])
    found = measure_counts(classification.count(gold, predicted, len(labels)), labels, repeats)
    parsed = predicted < len(labels)
    if len(labels) == 2:
        _rank_binary(found, rows[parsed], gold[parsed], labels, repeats)
    else:
        _rank_classes(found, rows[parsed], gold[parsed], labels)
    calibration, other_side = _calibrate(rows[parsed], gold[parsed], predicted[parsed], labels, bins, details)
    return Performance(
        **{**vars(found), "calibration": calibration, "other_side": other_side},
    )


def class_numbers(rows: DataFrame, labels: Sequence[str]) -> tuple[Ints, Ints]:
    """Return the numbers of true and predicted classes; k for an unparsed output."""
    number = {label: index for index, label in enumerate(labels)}
    predicted = rows["predicted"].map(number).fillna(len(labels))
    return rows["gold"].map(number).to_numpy(int), predicted.to_numpy(int)


def strict_value(found: Performance, metric: str) -> float | None:
    """Return a metric with unparsed outputs as wrong answers, if it has such a value; higher is better."""
    value = (
        found.strict[metric] if metric in found.strict else found.metrics.get(metric, Estimate(None)).value
    )
    return -value if value is not None and metric in LOWER_IS_BETTER else value


def compute_metrics(labels: Sequence[str]) -> Callable[[Ints], dict[str, Floats]]:
    """Return the function that computes the metrics of two classes, or of more."""
    return classification.binary_metrics if len(labels) == 2 else classification.multiclass_metrics


def measure_counts(counts: Ints, labels: Sequence[str], repeats: float = 1.0) -> Performance:
    """Measure a classifier of which only the counts are known.

    Args:
        counts: (k, k + 1) counts; the last column counts unparsed outputs.
        labels: The k classes.
        repeats: How often an item was counted, in several runs or folds. Intervals are those of the items.
    """
    parsed = classification.without_unparsed(counts)
    is_binary, compute = len(labels) == 2, compute_metrics(labels)
    values = compute(parsed)
    drawn = (
        classification.bootstrap(parsed, compute, items=round(parsed.sum() / repeats)) if parsed.sum() else {}
    )
    ratios = classification.binary_ratios(parsed) if is_binary else {}
    metrics = {}
    for name, value in values.items():
        if name not in _PROPORTIONS:
            low, high = classification.quantiles(drawn[name]) if drawn else (math.nan, math.nan)
        else:
            over = ratios.get(name, (np.trace(parsed), parsed.sum()))
            low, high = wilson(int(over[0]) / repeats, int(over[1]) / repeats)
        metrics[name] = _estimate(float(value), low, high)
    strict = {name: _finite(float(value)) for name, value in compute(counts).items()}
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
    """Return the metrics that are 0 / 0; with more than two classes, those of each class."""
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


def wilson(successes: float, n: float) -> tuple[float, float]:
    """Return Wilson's 95% interval of a proportion; NaN if n is 0."""
    from statsmodels.stats.proportion import proportion_confint

    if not n:
        return math.nan, math.nan
    low, high = proportion_confint(successes, n, method="wilson")
    return float(low), float(high)


def _estimate(value: float, low: float = math.nan, high: float = math.nan) -> Estimate:
    return Estimate(*(_finite(number) for number in (value, low, high)))


def _finite(value: float) -> float | None:
    return None if math.isnan(value) else value


def positive_scores(rows: DataFrame, positive: str, labels: Sequence[str]) -> tuple[Floats, bool]:
    """Return how sure a classifier is that items are positive.

    Args:
        rows: n rows of `Predictions`; all are parsed.
        positive: The positive class.
        labels: The classes.

    Returns:
        (n,) probabilities or scores, NaN where a row has none; and whether all are probabilities.
    """
    confidence = rows["confidence"].to_numpy(float)
    values = np.where(rows["predicted"] == positive, confidence, 1 - confidence)
    chances = chances_of(rows, labels)
    for other in (rows["probability"], chances[f"p:{positive}"] if chances is not None else None):
        if other is not None:
            values = np.where(np.isnan(values), other.to_numpy(float), values)
    missing = np.isnan(values)
    values[missing] = rows["score"].to_numpy(float)[missing]
    return values, not (missing & ~np.isnan(values)).any()


def auc_within(
    positive: NDArray[np.bool_], scores: Floats, folds: NDArray[np.object_], repeats: float
) -> tuple[float, float, float]:
    """Compute the AUC within folds, with its interval; the scores of two folds have no common order.

    Args:
        positive: (n,) whether an item is positive.
        scores: (n,) scores.
        folds: (n,) the fold of each row.
        repeats: How often an item occurs.

    Returns:
        The mean AUC, weighted by the pairs of each fold, and the ends of its 95% interval (DeLong); NaN if it
        is not defined.
    """
    area = variance = pairs = 0.0
    for fold in dict.fromkeys(folds.tolist()):
        own = folds == fold
        above = int(positive[own].sum())
        weight = float(above * (own.sum() - above))
        if weight:
            areas, covariance = auc_with_covariance(positive[own], scores[own][None])
            area += weight * float(areas[0])
            variance += weight**2 * float(covariance[0, 0])
            pairs += weight
    if not pairs:
        return math.nan, math.nan, math.nan
    area, around = area / pairs, Z * math.sqrt(variance * repeats) / pairs
    if math.isnan(around):  # fewer than two items of a kind
        return area, math.nan, math.nan
    return area, max(0.0, area - around), min(1.0, area + around)


def _rank_binary(
    found: Performance, rows: DataFrame, gold: Ints, labels: Sequence[str], repeats: float
) -> None:
    """Add AUC and average precision to the metrics; None with one true class, or without scores."""
    from sklearn.metrics import average_precision_score

    found.metrics["auc"] = found.metrics["average_precision"] = Estimate(None)
    scores, _ = positive_scores(rows, labels[0], labels)
    known = ~np.isnan(scores)
    positive = gold[known] == 0
    if 0 < positive.sum() < len(positive):
        folds = rows.loc[known, "fold"].to_numpy()
        found.metrics["auc"] = _estimate(*auc_within(positive, scores[known], folds, repeats))
        precision = float(average_precision_score(positive, scores[known]))
        found.metrics["average_precision"] = Estimate(precision)


def _rank_classes(found: Performance, rows: DataFrame, gold: Ints, labels: Sequence[str]) -> None:
    """Add the AUC of each class, their means, Brier score and log loss, if rows have all probabilities."""
    from sklearn.metrics import roc_auc_score

    chances = chances_of(rows, labels)
    if chances is None:
        return
    table = chances.to_numpy(float)
    known = ~np.isnan(table).any(axis=1)
    table, gold = table[known], gold[known]
    areas = []
    for number, label in enumerate(labels):
        own = gold == number
        area = auc_interval(own, table[:, number])[0] if 0 < own.sum() < len(own) else math.nan
        found.per_class[label]["auc"] = _finite(area)
        areas.append(area)
    present = [area for area in areas if not math.isnan(area)]
    found.metrics["macro_auc"] = Estimate(float(np.mean(present)) if present else None)
    if len(present) == len(labels):
        pairs = roc_auc_score(gold, table / table.sum(axis=1, keepdims=True), multi_class="ovo")
        found.metrics["macro_auc_one_vs_one"] = Estimate(float(pairs))
    own = table[np.arange(len(gold)), gold]
    squares = ((table - np.eye(len(labels))[gold]) ** 2).sum(axis=1)
    found.metrics["brier"] = Estimate(float(squares.mean()))
    found.metrics["log_loss"] = Estimate(float(-np.log(own.clip(_LEAST)).mean()))


def _calibrate(
    rows: DataFrame,
    gold: Ints,
    predicted: Ints,
    labels: Sequence[str],
    bins: int,
    details: bool,
) -> tuple[dict[str, Calibration], int | None]:
    """Measure calibration of parsed rows with probabilities.

    Returns:
        The calibration of P(positive) and of the confidence in the predicted label; and the number of rows
        whose P(positive) is on the other side of .5 than their label, None without probabilities.
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
        found["positive"] = _calibration(chance, positive, bins, is_positive=True, details=details)
        found["top"] = _calibration(np.where(claims, chance, 1 - chance), right[known], bins)
        other_side = int((((chance > 0.5) & ~claims) | ((chance < 0.5) & claims)).sum())
    else:
        confidence = rows["confidence"].to_numpy(float)
        chances = chances_of(rows, labels)
        if chances is not None:
            own = chances.to_numpy(float)[np.arange(len(rows)), predicted]
            confidence = np.where(np.isnan(confidence), own, confidence)
        known = ~np.isnan(confidence)
        if known.any():
            found["top"] = _calibration(confidence[known], right[known], bins)
    return found, other_side


def _calibration(
    chance: Floats, label: Floats, bins: int, is_positive: bool = False, details: bool = False
) -> Calibration:
    diagram = reliability(chance, label, bins)
    equal = calibration_errors(reliability(chance, label, bins, equal_mass=True))
    more: Mapping[str, Any] = {}
    if is_positive:
        own = np.where(label == 1, chance, 1 - chance).clip(_LEAST)
        more = {"brier": float(((chance - label) ** 2).mean()), "log_loss": float(-np.log(own).mean())}
    if details:
        expected, p = consistency(chance, label, bins)
        more = {**more, "expected_if_calibrated": expected, "p": p}
    return Calibration(*calibration_errors(diagram), *equal, diagram, **more)
