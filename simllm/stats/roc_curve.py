"""The area under the ROC curve (AUC), with intervals and tests by DeLong et al. (1988)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata

Floats = NDArray[np.float64]


def auc_with_covariance(positive: NDArray[np.bool_], scores: Floats) -> tuple[Floats, Floats]:
    """Compute the AUC of m scores for the same n items, and their covariance.

    The fast algorithm of Sun and Xu (2014) is used; ties count one half.

    Args:
        positive: (n,) whether an item is positive; both kinds must occur.
        scores: (m, n) scores, higher for items that should be positive.

    Returns:
        (m,) areas, and their (m, m) covariance; the covariance is NaN with fewer than two items of a kind.
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


def auc_interval(positive: NDArray[np.bool_], scores: Floats) -> tuple[float, float, float]:
    """Compute an AUC and its 95% interval, cut to [0, 1].

    Args:
        positive: (n,) whether an item is positive; both kinds must occur.
        scores: (n,) scores.

    Returns:
        The area, and the ends of the interval; these are NaN with fewer than two items of a kind.
    """
    areas, covariance = auc_with_covariance(positive, scores[None])
    around = float(norm.ppf(0.975) * np.sqrt(covariance[0, 0]))
    area = float(areas[0])
    return area, max(0.0, area - around) if around == around else math.nan, min(1.0, area + around)


def compare_aucs(positive: NDArray[np.bool_], scores: Floats) -> tuple[float, float, float, float]:
    """Test whether two scores have the same AUC on the same items (DeLong's test).

    Args:
        positive: (n,) whether an item is positive; both kinds must occur.
        scores: (2, n) scores.

    Returns:
        The difference of the areas, its standard error, z, and the two-sided p-value. The last two are NaN
        with fewer than two items of a kind, or if different areas have no error, as with few items.
    """
    areas, covariance = auc_with_covariance(positive, scores)
    difference = float(areas[0] - areas[1])
    variance = float(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    error = math.sqrt(max(0.0, variance)) if variance == variance else math.nan
    same = 0.0 if abs(difference) < 1e-12 else math.nan  # without an error: one order, or too few items
    z = same if error < 1e-12 else difference / error
    return difference, error, z, float(2 * norm.sf(abs(z)))
