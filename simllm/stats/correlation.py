"""Agreement of scores with ratings: correlations, p-values, intervals, pairwise accuracy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from simllm.stats.rater_agreement import mean_ratings

_RESAMPLES, _CONFIDENCE, _SEED = 2000, 0.95, 12345
_RESAMPLES_OF_SPREAD = 500  # a standard deviation needs fewer than a quantile
_PERMUTATIONS = 9999
_MOST_EXACT = 8  # pairs of which all 40,320 permutations are tried
_MOST_GROUPS = 50  # of raters, for the jackknife
_AT_ONCE = 1_000_000  # numbers of a batch of resamples
_MOST_PAIRS = 2_000_000  # of items, for the pairwise accuracy

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

    The p-value is that of a permutation test (see `_p_value`). The interval resamples the pairs
    2,000 times; it is NaN where all resamples agree, as for a perfect correlation. Everything is NaN
    where scores or ratings are constant.
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
    """Two-sided p-value of Spearman's rho: the share of permutations with a rho at least as far from zero.

    Up to eight pairs all permutations are tried. Of more pairs 9,999 are drawn, and the data count as
    one more, so that p is never zero (Phipson and Smyth, "Permutation p-values should never be zero",
    2010). Ties need no correction: they stay in every permutation.
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
    """Compute the 95% interval of Spearman's rho over other pairs and other raters.

    The interval is for the correlation to expect when as many other raters, drawn from the same
    population, rate other pairs of the same kind. On Fisher's z scale two variances are added. That
    over pairs comes from a bootstrap. That over raters comes from the jackknife: each rater is left
    out once (Tukey, "Bias and confidence in not-quite large samples", 1958); it is rather too large
    than too small (Efron and Stein, "The jackknife estimate of variance", 1981). Few raters tell
    little about the variance between raters, so that the quantile is Student's t with the degrees of
    freedom of Satterthwaite ("An approximate distribution of estimates of variance components", 1946).

    Raters are not drawn with replacement, as pairs are: a mean that counts a rater twice is noisier
    than a real one, correlates less, and would pull the interval down.

    Args:
        scores: (n,) scores of a metric.
        raters: (n, raters) ratings of two or more raters, NaN where there is none. More than fifty
            raters are left out in fifty groups.

    Returns:
        The interval; NaN where it is undefined, as for a perfect correlation, or where without one of
        the raters too few pairs are left.
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
    """Spearman's rho of the pairs whose rating is not NaN; NaN for fewer than three."""
    rated = ~np.isnan(ratings)
    return (
        float(rank_correlations(scores[None, rated], ratings[None, rated])[0]) if rated.sum() > 2 else np.nan
    )


def _fisher(rho: Floats, n: int) -> Floats:
    """Transform to Fisher's z, which is infinite at 1: there it is taken half-way to the next lower rho."""
    most = 1 - 6 / (n**3 - n)
    return np.asarray(np.arctanh(np.clip(rho, -most, most)))


def _centred_ranks(values: Floats) -> Floats:
    """Mean ranks minus their mean, all multiples of a half."""
    return np.asarray(stats.rankdata(values) - (len(values) + 1) / 2, float)


def rank_correlations(a: Floats, b: Floats) -> Floats:
    """Correlate the rows of two (k, n) arrays: (k,) values of Spearman's rho, NaN where a row is constant."""
    ranks = [stats.rankdata(values, axis=1) for values in (a, b)]
    centred = [r - r.mean(axis=1, keepdims=True) for r in ranks]
    covariance = (centred[0] * centred[1]).sum(axis=1)
    scale = np.sqrt((centred[0] ** 2).sum(axis=1) * (centred[1] ** 2).sum(axis=1))
    return np.clip(np.divide(covariance, scale, out=np.full_like(scale, np.nan), where=scale > 0), -1, 1)


def kendall(scores: Floats, ratings: Floats) -> float:
    """Compute Kendall's tau-b; NaN where either side is constant."""
    return float(stats.kendalltau(scores, ratings).statistic)


def pearson(scores: Floats, ratings: Floats) -> float:
    """Compute Pearson's r; NaN where either side is constant."""
    if np.ptp(scores) == 0 or np.ptp(ratings) == 0:
        return float("nan")
    return float(stats.pearsonr(scores, ratings).statistic)


def pairwise_accuracy(scores: Floats, ratings: Floats) -> float:
    """Compute the share of pairs of items that scores and ratings order alike, ties included.

    Scores that differ by no more than some epsilon count as tied. The epsilon is the best one for
    these data, so that fine-grained scores are not punished for never being equal (Deutsch, Foster
    and Freitag, "Ties matter", 2023, acc*eq). Of more than two million pairs two million are drawn.
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
    # correct[k]: the k pairs of smallest difference count as tied; k may not part equal differences
    correct = np.concatenate([[0], np.cumsum(tied)]) + agree.sum() - np.concatenate([[0], np.cumsum(agree)])
    whole = np.concatenate([[True], np.diff(size) > 0, [True]])
    return float(correct[whole].max() / len(a))


def _interval(resampled: Floats) -> tuple[float, float]:
    # A resample of a small set may be constant, and is left out.
    low, high = np.nanquantile(resampled, [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2])
    return (float(low), float(high)) if high - low > 1e-12 else (float("nan"), float("nan"))


def _resamples(n: int, count: int, random: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Yield `count` rows of n indices, drawn with replacement, in batches of bounded memory."""
    size = max(1, min(100, _AT_ONCE // n))
    for start in range(0, count, size):
        yield random.integers(n, size=(min(size, count - start), n))
