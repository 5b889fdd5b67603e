"""Metrics of classifiers: from confusion matrices (see the package `stats`), from scores, from attempts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import mannwhitneyu, norm, rankdata

from simllm.array_types import Floats, Ints
from simllm.errors import InputError
from simllm.stats.intervals import Z

Ratios = dict[str, tuple[Floats, Floats]]  # for each metric, numerator and denominator
_RESAMPLES, _SEED = 10_000, 12345


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


def bootstrap(
    counts: Ints, metrics: Callable[[Ints], dict[str, Floats]], seed: int = _SEED, items: int | None = None
) -> dict[str, Floats]:
    """Compute `metrics`, such as `binary_metrics`, of 10,000 resamples of a (k, k + 1) confusion matrix.

    `items` is the number of items in a resample, by default the sum of the counts. If an item is counted
    several times, pass the number of distinct items: predictions for one item are not independent, so the
    default would give too narrow intervals. The first axis of each returned array is the resample.
    """
    total = int(counts.sum())
    size = max(1, items if items is not None else total)
    # The cells of a resample follow a multinomial distribution. Drawing them directly, instead of the items,
    # makes the time independent of the number of items.
    draws = np.random.default_rng(seed).multinomial(size, counts.ravel() / total, size=_RESAMPLES)
    return metrics(draws.reshape(-1, *counts.shape))


def area_under_roc(positive: Floats, negative: Floats) -> float:
    """Compute the AUC of (n,) scores of positive and (m,) scores of negative items.

    The AUC is the probability that a positive item scores higher than a negative item; a tie counts half.
    """
    return float(mannwhitneyu(positive, negative).statistic / (len(positive) * len(negative)))


def auc_with_covariance(positive: NDArray[np.bool_], scores: Floats) -> tuple[Floats, Floats]:
    """Compute the (m,) AUCs of m scoring functions and their (m, m) covariance, as Sun and Xu (2014) do.

    By hand, because no package that simllm uses has DeLong's test.

    There must be positive and negative items. The covariance is NaN with fewer than two of either kind.
    """
    above, below = scores[:, positive], scores[:, ~positive]
    n_above, n_below = above.shape[1], below.shape[1]
    joint = rankdata(np.concatenate([above, below], axis=1), axis=1)
    # For each item, the share of items of the other kind that it is ordered rightly with.
    of_positive = (joint[:, :n_above] - rankdata(above, axis=1)) / n_below
    of_negative = 1 - (joint[:, n_above:] - rankdata(below, axis=1)) / n_above
    areas = of_positive.mean(axis=1)
    if min(n_above, n_below) < 2:
        return areas, np.full((len(scores), len(scores)), np.nan)
    covariance = np.cov(of_positive) / n_above + np.cov(of_negative) / n_below
    return areas, np.atleast_2d(covariance)


def mean_auc_with_covariance(
    positive: NDArray[np.bool_], scores: Floats, folds: NDArray[Any]
) -> tuple[Floats, Floats]:
    """Compute the (m,) mean AUCs over folds, and the (m, m) covariance of these means.

    A fold with p positive and q negative items has the weight p * q; a fold with one kind only is left out.
    All values are NaN if no fold remains. The covariance is NaN if a fold has one item of a kind.
    """
    m, pairs = len(scores), 0.0
    areas, covariance = np.zeros(m), np.zeros((m, m))
    # Scores of different folds come from different trained models and cannot be compared with each other.
    for fold in dict.fromkeys(folds.tolist()):
        own = folds == fold
        above = int(positive[own].sum())
        weight = float(above * (own.sum() - above))
        if weight:
            part, error = auc_with_covariance(positive[own], scores[:, own])
            areas += weight * part
            covariance += weight**2 * error
            pairs += weight
    if not pairs:
        return np.full(m, np.nan), np.full((m, m), np.nan)
    return areas / pairs, covariance / pairs**2


# In simulations with 30 + 30 to 100 + 100 items and true AUCs from .95 to .99, DeLong's 95% interval holds
# the AUC in 82 to 92% of cases, and that on the logit scale (Pepe, "The statistical evaluation of medical
# tests for classification and prediction", 2003) in 93 to 98%.
_NEAR_THE_END = 0.05


def auc_interval(
    positive: NDArray[np.bool_], scores: Floats, folds: NDArray[Any], repeats: float = 1.0
) -> tuple[float, float, float]:
    """Compute the mean AUC of (n,) scores over folds, and the lower and upper end of its interval.

    The interval is DeLong's, limited to the range from 0 to 1; for an AUC from .95, or up to .05, it is
    DeLong's on the logit scale, and for an AUC of exactly 0 or 1 Newcombe's. All three are NaN if no fold has
    both kinds of items, the ends also if a fold has one item of a kind.
    """
    areas, covariance = mean_auc_with_covariance(positive, scores[None], folds)
    area, around = float(areas[0]), Z * math.sqrt(float(covariance[0, 0]) * repeats)
    if math.isnan(around):
        return area, math.nan, math.nan
    # DeLong's variance is 0 here, which would make the AUC look certain.
    if around < 1e-12 and min(area, 1 - area) < 1e-12:
        reach = _boundary_reach(positive, folds, repeats)
        return (area, 1 - reach, 1.0) if area > 0.5 else (area, 0.0, reach)
    if around < 1e-12:  # all scores are equal: they order nothing, and show no spread
        return area, math.nan, math.nan
    if min(area, 1 - area) <= _NEAR_THE_END + 1e-12:  # 1 - .95 is rounded
        # The distribution of an AUC near 1 is skewed: DeLong's symmetric interval reaches over 1, and is too
        # short below. By the delta method, its half width on the logit scale is divided by AUC (1 - AUC).
        middle, reach = float(logit(area)), around / (area * (1 - area))
        return area, float(expit(middle - reach)), float(expit(middle + reach))
    return area, max(0.0, area - around), min(1.0, area + around)


def _boundary_reach(positive: NDArray[np.bool_], folds: NDArray[Any], repeats: float) -> float:
    """Return the width of the 95% interval of an AUC that is exactly 0 or 1.

    The interval has all values t with |AUC - t| <= z sqrt(V(t)), where V is the variance of Hanley and McNeil
    with the numbers of positive and negative items replaced by their mean in its correction terms. It is
    method 5 of Newcombe ("Confidence intervals for an effect size measure based on the Mann-Whitney
    statistic. Part 2: asymptotic methods and evaluation", 2006).
    """
    # Over folds, the variances are added with the weights of `mean_auc_with_covariance`.
    parts = [positive[folds == fold] for fold in dict.fromkeys(folds.tolist())]
    sizes = [(int(part.sum()), int((~part).sum())) for part in parts]
    pairs = np.array([m * n for m, n in sizes], float)
    more = np.array([(m + n) / 2 - 1 for m, n in sizes])

    def excess(t: float) -> float:
        terms = pairs * t * (1 - t) * (1 + more * ((1 - t) / (2 - t) + t / (1 + t)))
        return 1 - t - Z * math.sqrt(repeats * terms.sum()) / pairs.sum()

    low, high = 0.0, 1 - 1e-12  # 1 itself is a solution, too
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return 1 - low


def compare_aucs(
    positive: NDArray[np.bool_], scores: Floats, folds: NDArray[Any] | None = None, repeats: float = 1.0
) -> tuple[float, float, float, float]:
    """Test whether two scoring functions have the same AUC, or the same mean AUC over folds (DeLong's test).

    Returns the first AUC minus the second, its standard error, z, and p. All are NaN if no fold has both
    kinds of items. All but the difference are NaN if a fold has one item of a kind. z and p are NaN if the
    AUCs differ although the standard error is 0.
    """
    folds = np.zeros(len(positive)) if folds is None else folds
    areas, covariance = mean_auc_with_covariance(positive, scores, folds)
    difference = float(areas[0] - areas[1])
    variance = repeats * float(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    error = math.sqrt(max(0.0, variance)) if variance == variance else math.nan
    same = 0.0 if abs(difference) < 1e-12 else math.nan  # without an error: one order, or too few items
    z = same if error < 1e-12 else difference / error
    return difference, error, z, float(2 * norm.sf(abs(z)))


def pass_at_k(passed: Sequence[Sequence[bool]], k: int) -> float:
    """Estimate pass@k: the probability that at least one of k attempts passes, averaged over items.

    If c of an item's n attempts passed, the estimate is 1 - C(n - c, k) / C(n, k) (Chen et al., "Evaluating
    large language models trained on code", 2021). Fewer than k attempts of an item are an `InputError`.
    """
    fewest = min(map(len, passed))
    if fewest < k:
        raise InputError(f"TOP-{k} needs {k} candidates of each item; an item has {fewest}")
    shares = [comb(len(attempts) - sum(attempts), k) / comb(len(attempts), k) for attempts in passed]
    return 1 - sum(shares) / len(shares)


def average_pass_rate(passed: Sequence[Sequence[bool]]) -> float:
    """Compute AVG-k: the share of an item's attempts that passed, averaged over items."""
    if not all(map(len, passed)):
        raise InputError("AVG-k needs a candidate of each item; an item has none")
    return sum(sum(attempts) / len(attempts) for attempts in passed) / len(passed)
