"""Correlation of scores with ratings: coefficients, p-values, intervals, pairwise accuracy."""

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
    """Spearman's rho of n pairs, its two-sided p-value and 95% percentile interval."""

    rho: float
    p_value: float
    low: float
    high: float


def spearman(scores: Floats, ratings: Floats) -> Correlation:
    """Correlate (n,) scores with (n,) ratings.

    The p-value comes from a permutation test (see `_p_value`). The interval comes from 2,000
    bootstrap resamples; it is NaN if all resamples are equal, as for a perfect correlation.
    Everything is NaN if scores or ratings are constant.
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
    """Return the two-sided p-value of Spearman's rho from a permutation test.

    It is the share of permutations whose rho is at least as far from zero as the observed rho. Up to
    eight pairs, all permutations are tried. For more pairs 9,999 are drawn, and the observed order is
    the 10,000th, so that p is never zero (Phipson and Smyth, "Permutation p-values should never be
    zero", 2010). Ties need no correction, because permutations keep them.
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
    """Compute the 95% interval of Spearman's rho for new pairs and new raters.

    The interval is for the correlation if the same number of other raters rated other pairs of the
    same kind. It adds two variances on Fisher's z scale. The variance over pairs comes from a
    bootstrap. The variance over raters comes from the jackknife, which leaves out each rater once
    (Tukey, "Bias and confidence in not-quite large samples", 1958). The jackknife tends to
    overestimate (Efron and Stein, "The jackknife estimate of variance", 1981). With few raters the
    variance between raters is uncertain; therefore the quantile is that of Student's t with
    Satterthwaite's degrees of freedom ("An approximate distribution of estimates of variance
    components", 1946).

    Raters are not resampled with replacement. A mean that counts a rater twice is noisier and
    correlates less, which would lower the interval.

    Args:
        scores: (n,) scores of a metric.
        raters: (n, raters) ratings of at least two raters, NaN if there is none. More than fifty
            raters are left out in fifty groups.

    Returns:
        The lower and upper bound. They are NaN for a perfect correlation, and if too few pairs are
        left without one of the raters.
    """
    undefined = float("nan"), float("nan")
    ratings = mean_ratings(raters)
    rated = ~np.isnan(ratings)
    scores, ratings, raters = scores[rated], ratings[rated], raters[rated]
    n, centre = len(scores), _of_rated(scores, ratings)
    if np.isnan(centre):
        return undefined
    random = np.random.default_rng(_SEED)
    resamples = _resamples(n, _RESAMPLES_OF_SPREAD, random)
    over_pairs = np.concatenate([rank_correlations(scores[rows], ratings[rows]) for rows in resamples])
    groups = np.array_split(random.permutation(raters.shape[1]), min(raters.shape[1], _MOST_GROUPS))
    without = [_of_rated(scores, mean_ratings(np.delete(raters, group, axis=1))) for group in groups]
    last = len(groups) - 1
    pairs, people = np.nanvar(_fisher(over_pairs, n)), last * np.var(_fisher(np.array(without), n))
    if pairs < 1e-12 or np.isnan(people):
        return undefined
    freedom = (pairs + people) ** 2 / (pairs**2 / (n - 1) + people**2 / last)
    reach = stats.t.ppf((1 + _CONFIDENCE) / 2, freedom) * np.sqrt(pairs + people)
    (z,) = _fisher(np.array([centre]), n)
    return float(np.tanh(z - reach)), float(np.tanh(z + reach))


def _of_rated(scores: Floats, ratings: Floats) -> float:
    """Return Spearman's rho over the pairs whose rating is not NaN; NaN for fewer than three pairs."""
    rated = ~np.isnan(ratings)
    return (
        float(rank_correlations(scores[None, rated], ratings[None, rated])[0]) if rated.sum() > 2 else np.nan
    )


def _fisher(rho: Floats, n: int) -> Floats:
    """Transform rho of n pairs to Fisher's z.

    z is infinite for rho = 1; there, rho is replaced by the middle between 1 and the next possible rho.
    """
    most = 1 - 6 / (n**3 - n)
    return np.asarray(np.arctanh(np.clip(rho, -most, most)))


def _centred_ranks(values: Floats) -> Floats:
    """Return the ranks minus their mean; tied values have their mean rank."""
    return np.asarray(stats.rankdata(values) - (len(values) + 1) / 2, float)


def rank_correlations(a: Floats, b: Floats) -> Floats:
    """Return Spearman's rho of each row of two (k, n) arrays, (k,); NaN if a row is constant."""
    ranks = [stats.rankdata(values, axis=1) for values in (a, b)]
    centred = [r - r.mean(axis=1, keepdims=True) for r in ranks]
    covariance = (centred[0] * centred[1]).sum(axis=1)
    scale = np.sqrt((centred[0] ** 2).sum(axis=1) * (centred[1] ** 2).sum(axis=1))
    return np.clip(np.divide(covariance, scale, out=np.full_like(scale, np.nan), where=scale > 0), -1, 1)


def kendall(scores: Floats, ratings: Floats) -> float:
    """Compute Kendall's tau-b; NaN if scores or ratings are constant."""
    return float(stats.kendalltau(scores, ratings).statistic)


def pearson(scores: Floats, ratings: Floats) -> float:
    """Compute Pearson's r; NaN if scores or ratings are constant."""
    if np.ptp(scores) == 0 or np.ptp(ratings) == 0:
        return float("nan")
    return float(stats.pearsonr(scores, ratings).statistic)


def pairwise_accuracy(scores: Floats, ratings: Floats) -> float:
    """Compute the share of pairs of items that scores and ratings order in the same way, ties included.

    Scores count as tied if they differ by at most epsilon. Epsilon is chosen to maximise the accuracy,
    because continuous scores are never equal (acc*eq of Deutsch, Foster and Freitag, "Ties matter",
    2023). If there are more than two million pairs, two million are drawn.
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
    """Return the 95% percentile interval of bootstrap values; NaN if all are equal."""
    # Values are NaN for constant resamples of small sets.
    low, high = np.nanquantile(resampled, [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2])
    return (float(low), float(high)) if high - low > 1e-12 else (float("nan"), float("nan"))


def _resamples(n: int, count: int, random: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Yield `count` bootstrap resamples of n indices, as rows of arrays of bounded size."""
    size = max(1, min(100, _AT_ONCE // n))
    for start in range(0, count, size):
        yield random.integers(n, size=(min(size, count - start), n))
