"""Confidence interval of Spearman's correlation between the scores of a metric and human ratings.

It shows how much the correlation could change if the study were repeated with as many other items and
other raters: the items and the raters of a study are treated as random samples.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from simllm.array_types import Floats
from simllm.stats.rater_agreement import mean_ratings
from simllm.stats.spearman import rank_correlations, resamples

_CONFIDENCE, _SEED = 0.95, 12345
_RESAMPLES_OF_SPREAD = 500  # resamples for a standard deviation, which needs fewer than a quantile
_MOST_GROUPS = 50  # largest number of groups of raters in the jackknife


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
