"""Metrics of classification, computed from confusion matrices (see the package `stats`)."""

from __future__ import annotations

import numpy as np

from simllm.array_types import Floats, Ints

Ratios = dict[str, tuple[Floats, Floats]]  # for each metric, numerator and denominator


def count(gold: Ints, predicted: Ints, classes: int) -> Ints:
    """Make a (k, k + 1) confusion matrix from the (n,) true and the (n,) predicted class numbers of n items.

    Classes are numbered from 0 to k - 1; a predicted k is an unparsed output.
    """
    cells = np.bincount(gold * (classes + 1) + predicted, minlength=classes * (classes + 1))
    return cells.reshape(classes, classes + 1)


def without_unparsed(counts: Ints) -> Ints:
    """Return a copy of (..., k, k + 1) confusion matrices in which the column of unparsed outputs is 0."""
    parsed = counts.copy()
    parsed[..., -1] = 0
    return parsed


def binary_ratios(counts: Ints) -> Ratios:
    """Return metrics of (..., 2, 3) matrices as (...) numerators and denominators (0: undefined).

    An unparsed output is a wrong prediction: the denominators of recall, specificity and accuracy count it,
    that of precision does not. F-beta is (1 + beta²) P R / (beta² P + R).
    """
    rows, columns = counts.sum(-1), counts.sum(-2)
    right = np.diagonal(counts, axis1=-2, axis2=-1)
    tp, positives, claimed = right[..., 0], rows[..., 0], columns[..., 0]
    return {
        "precision": (tp, claimed),
        "recall": (tp, positives),
        "specificity": (right[..., 1], rows[..., 1]),
        "accuracy": (right.sum(-1), rows.sum(-1)),
        # F-beta in counts: (1 + beta²) tp / (beta² (tp + fn) + tp + fp), which is defined without P and R.
        "f1": (2 * tp, positives + claimed),
        "f2": (5 * tp, 4 * positives + claimed),
        "mcc": _correlation(counts),
    }


def _correlation(counts: Ints) -> tuple[Floats, Floats]:
    """Return the (...) numerators and denominators of R_K (Gorodkin, 2004): MCC extended to k classes."""
    rows, columns = counts.sum(-1).astype(float), counts.sum(-2).astype(float)
    total = rows.sum(-1)
    right = np.trace(counts, axis1=-2, axis2=-1)
    numerator = right * total - (rows * columns[..., :-1]).sum(-1)
    spread = [total**2 - (sums**2).sum(-1) for sums in (rows, columns)]
    return numerator, np.sqrt(spread[0] * spread[1])


def divide(ratio: tuple[Floats, Floats]) -> Floats:
    """Divide numerators by denominators, element by element; the result is 0 where the denominator is 0."""
    numerator, denominator = ratio
    return np.divide(numerator, denominator, out=np.zeros(np.shape(numerator)), where=denominator != 0)


def binary_metrics(counts: Ints) -> dict[str, Floats]:
    """Compute metrics of (..., 2, 3) confusion matrices, each as an array of shape (...).

    Kappa and balanced accuracy are NaN if all items of a matrix have the same true class.
    """
    values = {name: divide(ratio) for name, ratio in binary_ratios(counts).items()}
    balanced = (values["recall"] + values["specificity"]) / 2
    return values | {"balanced_accuracy": _null_for_one_class(balanced, counts), "kappa": _kappa(counts)}


def _kappa(counts: Ints) -> Floats:
    """Compute Cohen's kappa of each (..., k, k + 1) matrix: (accuracy - chance) / (1 - chance).

    Chance is the accuracy of random predictions that choose each class as often as the classifier does.
    """
    rows, columns = counts.sum(-1).astype(float), counts.sum(-2).astype(float)
    total = rows.sum(-1)
    expected = (rows * columns[..., :-1]).sum(-1)
    # Both terms are multiplied by total², so that they stay whole numbers until the division.
    right = np.trace(counts, axis1=-2, axis2=-1) * total
    return _null_for_one_class(divide((right - expected, total**2 - expected)), counts)


def _null_for_one_class(values: Floats, counts: Ints) -> Floats:
    """Set the (...) values to NaN where all items of a matrix have the same true class."""
    return np.where((counts.sum(-1) > 0).sum(-1) > 1, values, np.nan)


def class_metrics(counts: Ints) -> dict[str, Floats]:
    """Compute metrics of each class against all other classes, as arrays of shape (..., k).

    The support is the number of items with this true class.
    """
    # The unparsed outputs are in the rows, where they count as missed, but in no class's column.
    rows, columns = counts.sum(-1), counts[..., :-1].sum(-2)
    right = np.diagonal(counts, axis1=-2, axis2=-1)
    total = rows.sum(-1, keepdims=True)
    ratios = {
        "precision": (right, columns),
        "recall": (right, rows),
        "specificity": (total - rows - columns + right, total - rows),
        "f1": (2 * right, rows + columns),
        "f2": (5 * right, 4 * rows + columns),
    }
    return {name: divide(ratio) for name, ratio in ratios.items()} | {"support": rows}


def multiclass_metrics(counts: Ints) -> dict[str, Floats]:
    """Compute metrics that summarize three or more classes, each as an array of shape (...).

    A macro mean is over the classes that occur as a true or a predicted class. A weighted mean weights each
    class by its number of items. Balanced accuracy is the mean recall of the classes that occur as a true
    class; it and kappa are NaN if all items of a matrix have the same true class.
    """
    each, rows = class_metrics(counts), counts.sum(-1)
    occurs = (rows + counts[..., :-1].sum(-2)) > 0
    right = np.trace(counts, axis1=-2, axis2=-1)
    balanced = divide((each["recall"].sum(-1), (rows > 0).sum(-1)))
    values = {
        "accuracy": divide((right, rows.sum(-1))),
        "mcc": divide(_correlation(counts)),
        "kappa": _kappa(counts),
        "balanced_accuracy": _null_for_one_class(balanced, counts),
    }
    for name in ("precision", "recall", "f1", "f2"):
        values[f"macro_{name}"] = divide((each[name].sum(-1), occurs.sum(-1)))
        values[f"weighted_{name}"] = divide(((each[name] * rows).sum(-1), rows.sum(-1)))
    return values
