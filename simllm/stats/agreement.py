"""Agreement between human raters, and the highest correlation that a metric can have with their ratings.

In all functions, `raters` has shape (n, r): ratings of n items by r raters; NaN where a rater did not rate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from simllm.array_types import Floats
from simllm.stats.correlation import rank_correlations, resamples

_SPLITS, _SEED = 200, 12345

_DIGITS = 12  # significant digits of a mean; further digits are rounding errors and would break ties
_CONFIDENCE = 0.95
_RESAMPLES_OF_SPREAD = 500  # resamples for a standard deviation, which needs fewer than a quantile
_MOST_GROUPS = 50  # largest number of groups of raters in the jackknife


@dataclass(frozen=True)
class RaterAgreement:
    """The agreement of r raters with each other in one data set.

    Attributes:
        raters: Number of raters r.
        alpha_ordinal: Krippendorff's alpha for the ranks of the ratings.
        alpha_interval: Krippendorff's alpha for the ratings themselves.
        split_half: Spearman's rho between the mean ratings of two halves of the raters, averaged over 200
            random divisions.
        ceiling: The estimated correlation that a perfect metric would have with the mean rating.
        one_against_rest: For each rater, Spearman's rho with the mean ratings by the other raters.
    """

    raters: int
    alpha_ordinal: float
    alpha_interval: float
    split_half: float
    ceiling: float
    one_against_rest: list[float]


def rater_agreement(raters: Floats) -> RaterAgreement | None:
    """Measure agreement on the items with at least two ratings.

    None with fewer than three such items, or if all their ratings are equal.
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
    """Compute Krippendorff's alpha: 1 if raters always agree, about 0 if they agree only by chance.

    alpha = 1 - (mean squared difference between two ratings of the same item) / (that between any two
    ratings); see Krippendorff, "Computing Krippendorff's alpha-reliability", 2011. Each row needs at least
    two ratings. `ordinal` replaces the ratings by their ranks.
    """
    is_rated = ~np.isnan(raters)
    values = raters.astype(np.float64)
    if ordinal:
        values[is_rated] = stats.rankdata(values[is_rated])
    total = int(is_rated.sum())
    # Sums of squares around the mean stand for the sums over all pairs, which would need n² numbers.
    expected = ((values[is_rated] - values[is_rated].mean()) ** 2).sum() / (total - 1)
    counts = is_rated.sum(axis=1)
    squares = np.nansum((values - np.nanmean(values, axis=1, keepdims=True)) ** 2, axis=1)
    observed = (squares * counts / (counts - 1)).sum() / total
    return float(1 - observed / expected)


def ceiling(split_half: float) -> float:
    """Estimate the correlation that a perfect metric would have with the mean rating; NaN unless r > 0.

    If two halves of the raters correlate with r, the mean of all has the reliability 2 r / (1 + r) (Spearman
    and Brown, 1910). The result is the square root of the reliability.
    """
    return float(np.sqrt(2 * split_half / (1 + split_half))) if split_half > 0 else float("nan")


def _split_half(raters: Floats) -> float:
    """Compute the mean Spearman correlation between the mean ratings by two halves of the raters.

    Each of 200 random divisions uses the items that both halves rated; NaN if all are undefined.
    """
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
    """Compute r correlations, each over the items that this rater and another one rated.

    NaN with fewer than three such items, or if the rater's ratings or the means of the others are constant.
    """
    correlations = []
    for rater in range(raters.shape[1]):
        rated = raters[~np.isnan(raters[:, rater])]
        own, others = rated[:, rater], mean_ratings(np.delete(rated, rater, axis=1))
        own, others = own[~np.isnan(others)], others[~np.isnan(others)]
        defined = len(own) > 2 and np.ptp(own) > 0 and np.ptp(others) > 0
        correlations.append(float(stats.spearmanr(own, others).statistic) if defined else float("nan"))
    return correlations


def mean_ratings(raters: Floats, weights: Floats | None = None) -> Floats:
    """Compute the (n,) mean ratings, with (r,) weights of the raters; NaN for an item without ratings."""
    is_rated = ~np.isnan(raters)
    weights = np.ones(raters.shape[1]) if weights is None else weights
    counts, sums = is_rated @ weights, np.where(is_rated, raters, 0) @ weights
    means = np.divide(sums, counts, out=np.full(len(raters), np.nan), where=counts > 0)
    # Means that should be equal could differ by a floating-point error, and would not be tied.
    return round_means(means, raters)


def round_means(means: Floats, values: Floats) -> Floats:
    """Round means of `values`, both of any shape, so that equal means do not differ by floating-point errors.

    All get the same number of decimals: 11 if the largest absolute value is 5, and 10 if it is 50.
    """
    largest = np.max(np.abs(values), where=~np.isnan(values), initial=0)
    decimals = _DIGITS - math.ceil(math.log10(largest)) if largest else 0
    return np.round(means, min(decimals, 300))


def interval_by_rater(scores: Floats, raters: Floats) -> tuple[float, float]:
    """Compute the interval of Spearman's rho between (n,) scores and mean ratings by r >= 2 raters.

    `raters` is (n, r), NaN where a rater did not rate. Both bounds are NaN for a perfect correlation, or if
    rho is undefined or becomes so when a rater is left out. Rho is undefined for constant values, and with
    fewer than three rated items.
    """
    undefined = float("nan"), float("nan")
    ratings = mean_ratings(raters)
    rated = ~np.isnan(ratings)
    scores, ratings, raters = scores[rated], ratings[rated], raters[rated]
    n, centre = len(scores), _spearman_of_rated(scores, ratings)
    if np.isnan(centre):
        return undefined
    random = np.random.default_rng(_SEED)
    # The items are resampled, but not the raters: a resample has some raters twice, so that its mean ratings
    # are noisier and correlate less with the scores. A jackknife gives the variance between raters instead
    # (Tukey, "Bias and confidence in not-quite large samples", 1958); it tends to overestimate this variance
    # (Efron and Stein, "The jackknife estimate of variance", 1981).
    batches = resamples(n, _RESAMPLES_OF_SPREAD, random)
    over_pairs = np.concatenate([rank_correlations(scores[rows], ratings[rows]) for rows in batches])
    groups = np.array_split(random.permutation(raters.shape[1]), min(raters.shape[1], _MOST_GROUPS))
    without = [_spearman_of_rated(scores, mean_ratings(np.delete(raters, group, axis=1))) for group in groups]
    last = len(groups) - 1
    pairs, people = np.nanvar(_fisher(over_pairs, n)), last * np.var(_fisher(np.array(without), n))
    if pairs < 1e-12 or np.isnan(people):
        return undefined
    # With few raters, the sum of the two variances is uncertain. Therefore, Student's t replaces the normal
    # distribution, with Satterthwaite's degrees of freedom ("An approximate
    # distribution of estimates of variance components", 1946).
    freedom = (pairs + people) ** 2 / (pairs**2 / (n - 1) + people**2 / last)
    reach = stats.t.ppf((1 + _CONFIDENCE) / 2, freedom) * np.sqrt(pairs + people)
    (z,) = _fisher(np.array([centre]), n)
    return float(np.tanh(z - reach)), float(np.tanh(z + reach))


def _spearman_of_rated(scores: Floats, ratings: Floats) -> float:
    """Return Spearman's rho over the items whose (n,) rating is not NaN; NaN with fewer than three."""
    rated = ~np.isnan(ratings)
    return (
        float(rank_correlations(scores[None, rated], ratings[None, rated])[0]) if rated.sum() > 2 else np.nan
    )


def _fisher(rho: Floats, n: int) -> Floats:
    """Transform Spearman's correlations of n items, in an array of any shape, to Fisher's z = artanh(rho)."""
    # z would be infinite for rho = 1. `most` lies halfway between 1 and the next lower rho of n items without
    # ties, 1 - 12 / (n³ - n).
    most = 1 - 6 / (n**3 - n)
    return np.asarray(np.arctanh(np.clip(rho, -most, most)))
