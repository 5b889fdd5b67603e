"""The area under the ROC curve (AUC), with confidence intervals and tests by DeLong et al. (1988).

In all functions, `positive` (n,) says which items are positive. `scores` (m, n) has a row for each of m
scoring functions. `folds` (n,) is the fold of each item. `repeats` is how often the same item occurs, on
average: its scores are not independent, so variances are multiplied by this number.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu, norm, rankdata

from simllm.array_types import Floats
from simllm.stats.proportion_intervals import Z


def area_under_roc(positive: Floats, negative: Floats) -> float:
    """Compute the AUC of (n,) scores of positive and (m,) scores of negative items.

    The AUC is the probability that a positive item scores higher than a negative item; a tie counts half.
    """
    return float(mannwhitneyu(positive, negative).statistic / (len(positive) * len(negative)))


def auc_with_covariance(positive: NDArray[np.bool_], scores: Floats) -> tuple[Floats, Floats]:
    """Compute the (m,) AUCs of m scoring functions and their (m, m) covariance, as Sun and Xu (2014) do.

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


def auc_interval(
    positive: NDArray[np.bool_], scores: Floats, folds: NDArray[Any], repeats: float = 1.0
) -> tuple[float, float, float]:
    """Compute the mean AUC of (n,) scores over folds, and the lower and upper end of its interval.

    The interval is DeLong's, limited to the range from 0 to 1; for an AUC of 0 or 1 it is Newcombe's. All
    three are NaN if no fold has both kinds of items, the ends also if a fold has one item of a kind.
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
    positive: NDArray[np.bool_],
    scores: Floats,
    folds: NDArray[Any] | None = None,
    repeats: float = 1.0,
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
