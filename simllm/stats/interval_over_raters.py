"""Confidence interval of Spearman's correlation between the scores of a metric and human ratings.

The interval shows how much the correlation could change if the study were repeated with other items and other
raters. The items and the raters of a study are treated as random samples.
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
    """Compute a 95% interval of Spearman's rho that covers both new items and new raters.

    Rho is the correlation between the scores and the mean ratings. The interval shows how much rho could
    change if the study were repeated with other items and other raters, as many as before.

    The interval is computed on the scale of Fisher's z = artanh(rho):

    - A bootstrap of the items gives the variance between items.
    - A jackknife, which leaves out each rater once, gives the variance between raters (Tukey, "Bias and
      confidence in not-quite large samples", 1958). It tends to overestimate this variance (Efron and Stein,
      "The jackknife estimate of variance", 1981).
    - The two variances are added. With few raters, the sum is uncertain. Therefore, the interval uses
      quantiles of Student's t instead of the normal distribution, with Satterthwaite's degrees of freedom
      ("An approximate distribution of estimates of variance components", 1946).

    There is no bootstrap of the raters, because its correlations would be too low: a resample contains some
    raters twice, so that its mean ratings are noisier and correlate less with the scores.

    Args:
        scores: (n,) scores of a metric for n items.
        raters: (n, r) ratings of n items by r >= 2 raters; NaN where a rater did not rate an item. If r
            is more than 50, the jackknife divides the raters into 50 groups, and leaves out each group once.

    Returns:
        The lower and the upper bound. Both are NaN for a perfect correlation. Both are also NaN if rho is
        undefined, or becomes undefined when a rater is left out. Rho is undefined for constant values and
        for fewer than three rated items.
    """
    undefined = float("nan"), float("nan")
    ratings = mean_ratings(raters)
    rated = ~np.isnan(ratings)
    scores, ratings, raters = scores[rated], ratings[rated], raters[rated]
    n, centre = len(scores), _spearman_of_rated(scores, ratings)
    if np.isnan(centre):
        return undefined
    random = np.random.default_rng(_SEED)
    batches = resamples(n, _RESAMPLES_OF_SPREAD, random)
    over_pairs = np.concatenate([rank_correlations(scores[rows], ratings[rows]) for rows in batches])
    groups = np.array_split(random.permutation(raters.shape[1]), min(raters.shape[1], _MOST_GROUPS))
    without = [_spearman_of_rated(scores, mean_ratings(np.delete(raters, group, axis=1))) for group in groups]
    last = len(groups) - 1
    pairs, people = np.nanvar(_fisher(over_pairs, n)), last * np.var(_fisher(np.array(without), n))
    if pairs < 1e-12 or np.isnan(people):
        return undefined
    freedom = (pairs + people) ** 2 / (pairs**2 / (n - 1) + people**2 / last)
    reach = stats.t.ppf((1 + _CONFIDENCE) / 2, freedom) * np.sqrt(pairs + people)
    (z,) = _fisher(np.array([centre]), n)
    return float(np.tanh(z - reach)), float(np.tanh(z + reach))


def _spearman_of_rated(scores: Floats, ratings: Floats) -> float:
    """Return Spearman's rho over the items whose rating is not NaN; NaN if there are fewer than three.

    Args:
        scores: (n,) scores.
        ratings: (n,) ratings, NaN for items without a rating.
    """
    rated = ~np.isnan(ratings)
    return (
        float(rank_correlations(scores[None, rated], ratings[None, rated])[0]) if rated.sum() > 2 else np.nan
    )


def _fisher(rho: Floats, n: int) -> Floats:
    """Transform Spearman's correlations to Fisher's z: z = artanh(rho).

    z would be infinite for rho = 1 and rho = -1. Therefore, rho is first limited to the range from -m to m,
    with m = 1 - 6 / (n^3 - n). This m lies halfway between 1 and the next lower value that rho can have for n
    items without ties.

    Args:
        rho: Spearman's correlations, an array of any shape.
        n: Number of items from which each correlation was computed.
    """
    most = 1 - 6 / (n**3 - n)
    return np.asarray(np.arctanh(np.clip(rho, -most, most)))
