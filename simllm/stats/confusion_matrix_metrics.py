"""Metrics of classification, computed from a confusion matrix.

The argument `counts` has the shape (..., k, k + 1): one confusion matrix for k classes, or an array of such
matrices. A row is a true class, and a column is a predicted class. The additional last column counts outputs
of a classifier from which no class could be read (unparsed outputs). With two classes, the first is the
positive class.
"""

from __future__ import annotations

import numpy as np

from simllm.array_types import Floats, Ints

Ratios = dict[str, tuple[Floats, Floats]]  # for each metric, numerator and denominator


def count(gold: Ints, predicted: Ints, classes: int) -> Ints:
    """Make a confusion matrix from the true and the predicted class of n items.

    Args:
        gold: (n,) indices of the true classes, from 0 to k - 1.
        predicted: (n,) indices of the predicted classes, from 0 to k - 1. The index k stands for an unparsed
            output: an output of the classifier from which no class could be read.
        classes: The number of classes k.

    Returns:
        (k, k + 1) numbers of items: one row for each true class, one column for each predicted class, and a
        last column for unparsed outputs.
    """
    cells = np.bincount(gold * (classes + 1) + predicted, minlength=classes * (classes + 1))
    return cells.reshape(classes, classes + 1)


def without_unparsed(counts: Ints) -> Ints:
    """Return a copy of confusion matrices with the unparsed outputs removed: their column is set to 0.

    An unparsed output is an output of a classifier from which no class could be read.

    Args:
        counts: (..., k, k + 1) confusion matrices for k classes. A row is a true class, and a column is a
            predicted class. The last column counts the unparsed outputs.
    """
    parsed = counts.copy()
    parsed[..., -1] = 0
    return parsed


def binary_ratios(counts: Ints) -> Ratios:
    """Return the metrics of two classes as fractions: numerators and denominators.

    A denominator of 0 shows that a metric is undefined. The metrics are precision, recall, specificity,
    accuracy, F1, F2 and MCC (Matthews' correlation coefficient). F-beta is (1 + beta²) P R / (beta² P + R),
    for precision P and recall R.

    An unparsed output is an output of a classifier from which no class could be read. It counts as a wrong
    prediction: it is in the denominators of recall, specificity and accuracy, but not in that of precision.

    Args:
        counts: (..., 2, 3) confusion matrices. A row is a true class; the first class is the positive one.
            The first two columns are the predicted classes. The last column counts unparsed outputs.

    Returns:
        A dict from the name of each metric to two arrays of shape (...): the numerator and the denominator
        for each matrix.
    """
    rows, columns = counts.sum(-1), counts.sum(-2)
    right = np.diagonal(counts, axis1=-2, axis2=-1)
    tp, positives, claimed = right[..., 0], rows[..., 0], columns[..., 0]
    return {
        "precision": (tp, claimed),
        "recall": (tp, positives),
        "specificity": (right[..., 1], rows[..., 1]),
        "accuracy": (right.sum(-1), rows.sum(-1)),
        "f1": (2 * tp, positives + claimed),
        "f2": (5 * tp, 4 * positives + claimed),
        "mcc": _correlation(counts),
    }


def _correlation(counts: Ints) -> tuple[Floats, Floats]:
    """Return the numerator and the denominator of R_K, a correlation between true and predicted classes.

    R_K (Gorodkin, 2004) extends MCC (Matthews' correlation coefficient) from two classes to k classes.

    Args:
        counts: (..., k, k + 1) confusion matrices for k classes. A row is a true class, and a column is a
            predicted class. The last column counts outputs from which no class could be read.

    Returns:
        Two arrays of shape (...): the numerator and the denominator of R_K for each matrix.
    """
    rows, columns = counts.sum(-1).astype(float), counts.sum(-2).astype(float)
    total = rows.sum(-1)
    right = np.trace(counts, axis1=-2, axis2=-1)
    numerator = right * total - (rows * columns[..., :-1]).sum(-1)
    spread = [total**2 - (sums**2).sum(-1) for sums in (rows, columns)]
    return numerator, np.sqrt(spread[0] * spread[1])


def divide(ratio: tuple[Floats, Floats]) -> Floats:
    """Divide numerators by denominators, element by element; the result is 0 where the denominator is 0.

    Args:
        ratio: The array of numerators, and the array of denominators.
    """
    numerator, denominator = ratio
    return np.divide(numerator, denominator, out=np.zeros(np.shape(numerator)), where=denominator != 0)


def binary_metrics(counts: Ints) -> dict[str, Floats]:
    """Compute metrics of classifiers with two classes.

    The metrics are precision, recall, specificity, accuracy, F1, F2, MCC, balanced accuracy and kappa.

    Args:
        counts: (..., 2, 3) confusion matrices. A row is a true class; the first class is the positive one.
            The first two columns are the predicted classes. The last column counts outputs of the classifier
            from which no class could be read.

    Returns:
        A dict from the name of each metric to an array of shape (...): one value for each matrix. Kappa and
        balanced accuracy are NaN if all items of a matrix have the same true class.
    """
    values = {name: divide(ratio) for name, ratio in binary_ratios(counts).items()}
    balanced = (values["recall"] + values["specificity"]) / 2
    return values | {"balanced_accuracy": _null_for_one_class(balanced, counts), "kappa": _kappa(counts)}


def _kappa(counts: Ints) -> Floats:
    """Compute Cohen's kappa of each confusion matrix: (accuracy - chance) / (1 - chance).

    Here, chance is the accuracy of random predictions that choose each class as often as the classifier does.

    Args:
        counts: (..., k, k + 1) confusion matrices for k classes. A row is a true class, and a column is a
            predicted class. The last column counts outputs from which no class could be read.

    Returns:
        An array of shape (...): kappa of each matrix; NaN if all its items have the same true class.
    """
    rows, columns = counts.sum(-1).astype(float), counts.sum(-2).astype(float)
    total = rows.sum(-1)
    expected = (rows * columns[..., :-1]).sum(-1)
    right = np.trace(counts, axis1=-2, axis2=-1) * total
    return _null_for_one_class(divide((right - expected, total**2 - expected)), counts)


def _null_for_one_class(values: Floats, counts: Ints) -> Floats:
    return np.where((counts.sum(-1) > 0).sum(-1) > 1, values, np.nan)


def class_metrics(counts: Ints) -> dict[str, Floats]:
    """Compute the metrics of each class against all other classes.

    Args:
        counts: (..., k, k + 1) confusion matrices for k classes. A row is a true class, and a column is a
            predicted class. The last column counts outputs from which no class could be read.

    Returns:
        A dict from the name of each metric to an array of shape (..., k): for each matrix, one value for each
        class. The metrics are precision, recall, specificity, f1, f2, and support (the number of items with
        this true class).
    """
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
    """Compute metrics that summarize all classes of a classifier with three or more classes.

    A macro mean, such as `macro_f1`, is the mean over the classes that occur as a true or a predicted class.
    A weighted mean, such as `weighted_f1`, weights each class by the number of items with this true class.
    Balanced accuracy is the mean recall of the classes that occur as a true class.

    Args:
        counts: (..., k, k + 1) confusion matrices for k classes. A row is a true class, and a column is a
            predicted class. The last column counts outputs from which no class could be read.

    Returns:
        A dict from the name of each metric to an array of shape (...): one value for each matrix. Kappa and
        balanced accuracy are NaN if all items of a matrix have the same true class.
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
