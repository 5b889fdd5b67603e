"""Correlation of metric scores with human ratings: coefficients, p-values, intervals, pairwise accuracy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from simllm.stats.rater_agreement import mean_ratings

_RESAMPLES, _CONFIDENCE, _SEED = 2000, 0.95, 12345
_RESAMPLES_OF_SPREAD = 500  # resamples for a standard deviation, which needs fewer than a quantile
_PERMUTATIONS = 9999
_MOST_EXACT = 8  # largest number of pairs for which all (at most 40,320) permutations are tried
_MOST_GROUPS = 50  # largest number of groups of raters in the jackknife
_AT_ONCE = 1_000_000  # numbers in a batch of resamples
_MOST_PAIRS = 2_000_000  # largest number of pairs of items for the pairwise accuracy

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Correlation:
    """Spearman's rank correlation between scores and ratings.

    Attributes:
        rho: The correlation, from -1 to 1.
        p_value: Two-sided p-value for the hypothesis that scores and ratings are independent.
        low: Lower bound of the 95% bootstrap interval.
        high: Upper bound of the 95% bootstrap interval.
    """

    rho: float
    p_value: float
    low: float
    high: float


def spearman(scores: Floats, ratings: Floats) -> Correlation:
    """Compute Spearman's rank correlation with a p-value and a 95% interval.

    The p-value comes from a permutation test. The interval comes from 2,000 bootstrap resamples. Both bounds
    are NaN if the resamples show no spread. All results are NaN if the scores or the ratings are constant.

    Args:
        scores: (n,) scores of n items.
        ratings: (n,) ratings of the items.
    """
    if np.ptp(scores) == 0 or np.ptp(ratings) == 0:
        return Correlation(*[float("nan")] * 4)
    random = np.random.default_rng(_SEED)
    resampled = np.concatenate(
        [
            rank_correlations(scores[rows], ratings[rows])
            for rows in _resamples(len(scores), _RESAMPLES, random)
        ]
    )
    rho = float(rank_correlations(scores[None], ratings[None])[0])
    return Correlation(rho, _p_value(scores, ratings), *_interval(resampled))


def _p_value(scores: Floats, ratings: Floats) -> float:
    """Compute the two-sided p-value of Spearman's rho with a permutation test.

    The p-value is the share of permutations whose rho is at least as far from 0 as the observed rho. For
    up to eight items, all permutations are tried. For more items, 9,999 random permutations are tried. The
    observed order counts as the 10,000th permutation, so that the p-value is never 0 (Phipson and Smyth,
    "Permutation p-values should never be zero", 2010). Tied values need no correction.

    Args:
        scores: (n,) scores.
        ratings: (n,) ratings.
    """
    a, b = (_centred_ranks(values) for values in (scores, ratings))
    least = abs((a * b).sum()) * (1 - 1e-9)  # the sums are exact up to 100,000 pairs
    if len(a) <= _MOST_EXACT:
        sums = b[np.array(list(permutations(range(len(b)))))] @ a
        return float((np.abs(sums) >= least).mean())
    random = np.random.default_rng(_SEED)
    extreme = sum(abs((a * random.permutation(b)).sum()) >= least for _ in range(_PERMUTATIONS))
    return float((extreme + 1) / (_PERMUTATIONS + 1))


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

    There is no bootstrap of the raters, because it would lower the interval: a resample contains some raters
    twice, so that its mean ratings are noisier and correlate less with the scores.

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
    resamples = _resamples(n, _RESAMPLES_OF_SPREAD, random)
    over_pairs = np.concatenate([rank_correlations(scores[rows], ratings[rows]) for rows in resamples])
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
    """Transform correlations to Fisher's z: z = artanh(rho).

    z would be infinite for rho = 1 and rho = -1. Therefore, rho is first limited to the range from -m to m.
    The limit m is halfway between 1 and the next smaller rho that is possible for n items without ties.

    Args:
        rho: Correlations, an array of any shape.
        n: Number of items from which each correlation was computed.
    """
    most = 1 - 6 / (n**3 - n)
    return np.asarray(np.arctanh(np.clip(rho, -most, most)))


def _centred_ranks(values: Floats) -> Floats:
    """Replace (n,) values by their ranks minus the mean of all ranks; equal values get the same mean rank."""
    return np.asarray(stats.rankdata(values) - (len(values) + 1) / 2, float)


def rank_correlations(a: Floats, b: Floats) -> Floats:
    """Compute k Spearman correlations at once: each row of `a` with the same row of `b`.

    Args:
        a: (k, n) values.
        b: (k, n) values.

    Returns:
        (k,) correlations; NaN if a row is constant.
    """
    ranks = [stats.rankdata(values, axis=1) for values in (a, b)]
    centred = [r - r.mean(axis=1, keepdims=True) for r in ranks]
    covariance = (centred[0] * centred[1]).sum(axis=1)
    scale = np.sqrt((centred[0] ** 2).sum(axis=1) * (centred[1] ** 2).sum(axis=1))
    return np.clip(np.divide(covariance, scale, out=np.full_like(scale, np.nan), where=scale > 0), -1, 1)


def kendall(scores: Floats, ratings: Floats) -> float:
    """Compute Kendall's tau-b between (n,) scores and (n,) ratings; NaN if one of them is constant."""
    return float(stats.kendalltau(scores, ratings).statistic)


def pearson(scores: Floats, ratings: Floats) -> float:
    """Compute Pearson's r between (n,) scores and (n,) ratings; NaN if one of them is constant."""
    if np.ptp(scores) == 0 or np.ptp(ratings) == 0:
        return float("nan")
    return float(stats.pearsonr(scores, ratings).statistic)


def area_under_roc(positive: Floats, negative: Floats) -> float:
    """Compute the area under the ROC curve.

    It is the probability that a positive item scores higher than a negative item; a tie counts half.

    Args:
        positive: (n,) scores of the positive items.
        negative: (m,) scores of the negative items.
    """
    return float(stats.mannwhitneyu(positive, negative).statistic / (len(positive) * len(negative)))


def pairwise_accuracy(scores: Floats, ratings: Floats) -> float:
    """Compute the share of item pairs for which the scores give the same order as the ratings.

    A pair of items with equal ratings counts as right only if the two scores are tied, too. Continuous scores
    are hardly ever equal. Therefore, two scores count as tied if they differ by at most epsilon. Epsilon is
    the value that gives the highest accuracy (acc*eq in Deutsch, Foster and Freitag, "Ties matter", 2023). If
    there are more than two million pairs of items, only two million random pairs are compared.

    Args:
        scores: (n,) scores of n items.
        ratings: (n,) ratings of the items.

    Returns:
        The share, from 0 to 1.
    """
    n = len(scores)
    if n * (n - 1) // 2 <= _MOST_PAIRS:
        a, b = np.triu_indices(n, 1)
    else:
        random = np.random.default_rng(_SEED)
        a = random.integers(n, size=_MOST_PAIRS)
        b = (a + random.integers(1, n, size=_MOST_PAIRS)) % n
    by_score, by_rating = scores[a] - scores[b], np.sign(ratings[a] - ratings[b])
    order = np.argsort(np.abs(by_score), kind="stable")
    size, tied = np.abs(by_score)[order], (by_rating == 0)[order]
    agree = ((np.sign(by_score) == by_rating) & (by_rating != 0))[order]
    # correct[k]: correct pairs if the k smallest differences count as ties; equal differences stay together
    correct = np.concatenate([[0], np.cumsum(tied)]) + agree.sum() - np.concatenate([[0], np.cumsum(agree)])
    whole = np.concatenate([[True], np.diff(size) > 0, [True]])
    return float(correct[whole].max() / len(a))


def _interval(resampled: Floats) -> tuple[float, float]:
    """Compute the 95% bootstrap interval of a correlation: the 2.5% and 97.5% quantiles.

    Both bounds are NaN if the quantiles are equal, because the resamples then show no spread.

    Args:
        resampled: The correlation in each bootstrap resample. NaN values are left out.
    """
    # Values are NaN for constant resamples of small sets.
    low, high = np.nanquantile(resampled, [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2])
    return (float(low), float(high)) if high - low > 1e-12 else (float("nan"), float("nan"))


def _resamples(n: int, count: int, random: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Draw bootstrap resamples: each has n items, chosen at random with replacement from all n items.

    Args:
        n: Number of items.
        count: Number of resamples.
        random: The random generator.

    Yields:
        Arrays (k, n) of item indices: k resamples, one in each row. To save memory, the `count` resamples are
        split over several arrays.
    """
    size = max(1, min(100, _AT_ONCE // n))
    for start in range(0, count, size):
        yield random.integers(n, size=(min(size, count - start), n))
