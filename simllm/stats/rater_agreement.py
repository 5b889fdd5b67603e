"""Agreement between raters, and the correlation that a metric can be expected to reach with them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

_SPLITS, _SEED = 200, 12345

Floats = NDArray[np.float64]
_DIGITS = 12  # significant digits of a mean; further ones are rounding noise, which would break ties


@dataclass(frozen=True)
class Agreement:
    """Agreement between the raters of one set."""

    raters: int
    alpha_ordinal: float  # Krippendorff's alpha
    alpha_interval: float
    split_half: float  # Spearman's rho of the mean ratings of two random halves of the raters
    ceiling: float  # the correlation that a metric can be expected to reach with the mean of all raters
    one_against_rest: list[float]  # per rater: Spearman's rho with the mean of the other raters


def agreement(raters: Floats) -> Agreement | None:
    """Measure the agreement in (n, raters) ratings, NaN where a rater gave none.

    Returns None where fewer than three pairs have two ratings, or where all ratings are equal.
    """
    rated = raters[(~np.isnan(raters)).sum(axis=1) >= 2]
    if len(rated) < 3 or np.nanmin(rated) == np.nanmax(rated):
        return None
    half = _split_half(rated)
    return Agreement(
        rated.shape[1],
        alpha(rated, ordinal=True),
        alpha(rated, ordinal=False),
        half,
        ceiling(half),
        _one_against_rest(rated),
    )


def alpha(raters: Floats, ordinal: bool) -> float:
    """Compute Krippendorff's alpha of (n, raters) ratings, at least two per row, NaN where there is none.

    Alpha is one minus observed by expected disagreement, the mean squared difference of ratings
    of one pair and of any two ratings (Krippendorff, "Computing Krippendorff's alpha-reliability",
    2011). Both follow from sums of squares, without a table of all values by all values. The
    ordinal difference of two values is the difference of their mean ranks.
    """
    given = ~np.isnan(raters)
    values = raters.astype(np.float64)
    if ordinal:
        values[given] = stats.rankdata(values[given])
    total = int(given.sum())
    expected = ((values[given] - values[given].mean()) ** 2).sum() / (total - 1)
    counts = given.sum(axis=1)
    squares = np.nansum((values - np.nanmean(values, axis=1, keepdims=True)) ** 2, axis=1)
    observed = (squares * counts / (counts - 1)).sum() / total
    return float(1 - observed / expected)


def ceiling(split_half: float) -> float:
    """Return the root of the reliability of the mean of all raters, 2 r / (1 + r) (Spearman and Brown, 1910).

    `split_half` is the correlation r of two halves of the raters. A metric without error correlates
    with the mean rating at this root. NaN where the halves do not correlate positively.
    """
    return float(np.sqrt(2 * split_half / (1 + split_half))) if split_half > 0 else float("nan")


def _split_half(raters: Floats) -> float:
    """Mean correlation over random splits of the raters; pairs that one half did not rate are left out."""
    random = np.random.default_rng(_SEED)
    found = []
    for _ in range(_SPLITS):
        halves = np.array_split(random.permutation(raters.shape[1]), 2)
        means = np.stack([mean_ratings(raters[:, half]) for half in halves])
        first, second = means[:, ~np.isnan(means).any(axis=0)]
        if len(first) and np.ptp(first) > 0 and np.ptp(second) > 0:
            found.append(stats.spearmanr(first, second).statistic)
    return float(np.mean(found)) if found else float("nan")


def _one_against_rest(raters: Floats) -> list[float]:
    """Per rater, the correlation with the mean of the others; NaN where one of the two is constant."""
    found = []
    for rater in range(raters.shape[1]):
        rated = raters[~np.isnan(raters[:, rater])]
        own, others = rated[:, rater], mean_ratings(np.delete(rated, rater, axis=1))
        own, others = own[~np.isnan(others)], others[~np.isnan(others)]
        defined = len(own) > 2 and np.ptp(own) > 0 and np.ptp(others) > 0
        found.append(float(stats.spearmanr(own, others).statistic) if defined else float("nan"))
    return found


def mean_ratings(raters: Floats, weights: Floats | None = None) -> Floats:
    """Average (n, raters) ratings to (n,) means, NaN where a pair has no rating.

    `weights` count raters more than once, or not at all. Means are rounded to twelve significant
    digits: equal means must tie, in whatever order they were added up.
    """
    given = ~np.isnan(raters)
    weights = np.ones(raters.shape[1]) if weights is None else weights
    counts, sums = given @ weights, np.where(given, raters, 0) @ weights
    means = np.divide(sums, counts, out=np.full(len(raters), np.nan), where=counts > 0)
    largest = np.max(np.abs(raters), where=given, initial=0)
    decimals = _DIGITS - math.ceil(math.log10(largest)) if largest else 0
    return np.round(means, min(decimals, 300))
