"""Agreement between raters, and the highest correlation that a metric can be expected to reach."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

_SPLITS, _SEED = 200, 12345

Floats = NDArray[np.float64]
_DIGITS = 12  # significant digits of a mean; further digits are rounding errors and would break ties


@dataclass(frozen=True)
class RaterAgreement:
    """Agreement between the raters of one set."""

    raters: int
    alpha_ordinal: float  # Krippendorff's alpha
    alpha_interval: float
    split_half: float  # Spearman's rho between the mean ratings of two random halves of the raters
    ceiling: float  # highest correlation to expect between a metric and the mean of all raters
    one_against_rest: list[float]  # for each rater, Spearman's rho with the mean of the other raters


def rater_agreement(raters: Floats) -> RaterAgreement | None:
    """Measure the agreement between raters.

    Args:
        raters: (n, raters) ratings, NaN if there is none.

    Returns:
        The agreement; None if fewer than three pairs have two ratings, or if all ratings are equal.
    """
    rated = raters[(~np.isnan(raters)).sum(axis=1) >= 2]
    if len(rated) < 3 or np.nanmin(rated) == np.nanmax(rated):
        return None
    half = _split_half(rated)
    return RaterAgreement(
        rated.shape[1],
        alpha(rated, ordinal=True),
        alpha(rated, ordinal=False),
        half,
        ceiling(half),
        _one_against_rest(rated),
    )


def alpha(raters: Floats, ordinal: bool) -> float:
    """Compute Krippendorff's alpha ("Computing Krippendorff's alpha-reliability", 2011).

    Alpha is 1 - observed / expected disagreement. The observed disagreement is the mean squared
    difference between ratings of one pair, the expected one that between any two ratings. Both are
    computed from sums of squares, which needs little memory.

    Args:
        raters: (n, raters) ratings, at least two per row, NaN if there is none.
        ordinal: Whether ratings are replaced by their ranks.
    """
    is_rated = ~np.isnan(raters)
    values = raters.astype(np.float64)
    if ordinal:
        values[is_rated] = stats.rankdata(values[is_rated])
    total = int(is_rated.sum())
    expected = ((values[is_rated] - values[is_rated].mean()) ** 2).sum() / (total - 1)
    counts = is_rated.sum(axis=1)
    squares = np.nansum((values - np.nanmean(values, axis=1, keepdims=True)) ** 2, axis=1)
    observed = (squares * counts / (counts - 1)).sum() / total
    return float(1 - observed / expected)


def ceiling(split_half: float) -> float:
    """Return the correlation that a perfect metric would have with the mean rating.

    It is the square root of the reliability of the mean rating, 2 r / (1 + r) (Spearman and Brown,
    1910).

    Args:
        split_half: The correlation r between two halves of the raters.

    Returns:
        The ceiling; NaN if r is not positive.
    """
    return float(np.sqrt(2 * split_half / (1 + split_half))) if split_half > 0 else float("nan")


def _split_half(raters: Floats) -> float:
    """Return the mean correlation between random halves of the raters, over pairs that both halves rated."""
    random = np.random.default_rng(_SEED)
    correlations = []
    for _ in range(_SPLITS):
        halves = np.array_split(random.permutation(raters.shape[1]), 2)
        means = np.stack([mean_ratings(raters[:, half]) for half in halves])
        first, second = means[:, ~np.isnan(means).any(axis=0)]
        if len(first) and np.ptp(first) > 0 and np.ptp(second) > 0:
            correlations.append(stats.spearmanr(first, second).statistic)
    return float(np.mean(correlations)) if correlations else float("nan")


def _one_against_rest(raters: Floats) -> list[float]:
    """Return the correlation of each rater with the mean of the others; NaN if one side is constant."""
    correlations = []
    for rater in range(raters.shape[1]):
        rated = raters[~np.isnan(raters[:, rater])]
        own, others = rated[:, rater], mean_ratings(np.delete(rated, rater, axis=1))
        own, others = own[~np.isnan(others)], others[~np.isnan(others)]
        defined = len(own) > 2 and np.ptp(own) > 0 and np.ptp(others) > 0
        correlations.append(float(stats.spearmanr(own, others).statistic) if defined else float("nan"))
    return correlations


def mean_ratings(raters: Floats, weights: Floats | None = None) -> Floats:
    """Compute the (n,) mean ratings; NaN for a pair without ratings.

    Means are rounded to twelve significant digits, so that equal means tie whatever the order of
    their sums.

    Args:
        raters: (n, raters) ratings, NaN if there is none.
        weights: (raters,) weights of the raters; by default 1.
    """
    is_rated = ~np.isnan(raters)
    weights = np.ones(raters.shape[1]) if weights is None else weights
    counts, sums = is_rated @ weights, np.where(is_rated, raters, 0) @ weights
    means = np.divide(sums, counts, out=np.full(len(raters), np.nan), where=counts > 0)
    largest = np.max(np.abs(raters), where=is_rated, initial=0)
    decimals = _DIGITS - math.ceil(math.log10(largest)) if largest else 0
    return np.round(means, min(decimals, 300))
