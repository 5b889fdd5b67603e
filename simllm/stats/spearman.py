"""Spearman's rank correlation between scores and ratings, with a p-value and a confidence interval."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from simllm.array_types import Floats
from simllm.stats.paired_bootstrap_and_permutation import FEWEST

_SEED = 12345
_RESAMPLES, _CONFIDENCE = 2000, 0.95
_AT_ONCE = 1_000_000  # numbers in a batch of resamples
_PERMUTATIONS = 9999
_MOST_EXACT = 8  # largest number of pairs for which all (at most 40,320) permutations are tried


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
    are NaN if all resamples have the same correlation, or if there are fewer than five items. All results are
    NaN if the scores or the ratings are constant.

    Args:
        scores: (n,) scores of n items.
        ratings: (n,) ratings of the items.
    """
    if np.ptp(scores) == 0 or np.ptp(ratings) == 0:
        return Correlation(*[float("nan")] * 4)
    rho = float(rank_correlations(scores[None], ratings[None])[0])
    interval = bootstrap_interval(scores, ratings, np.random.default_rng(_SEED))
    return Correlation(rho, _p_value(scores, ratings), *interval)


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


def bootstrap_interval(scores: Floats, ratings: Floats, random: np.random.Generator) -> tuple[float, float]:
    """Compute the 95% percentile bootstrap interval of Spearman's rho: the 2.5% and 97.5% quantiles.

    The quantiles are those of 2,000 resamples of the items. Both bounds are NaN if the quantiles are equal,
    because the resamples then show no spread, or if there are fewer than five items.

    Args:
        scores: (n,) scores of n items.
        ratings: (n,) ratings of the items.
        random: The random generator.
    """
    if len(scores) < FEWEST:
        return float("nan"), float("nan")
    batches = resamples(len(scores), _RESAMPLES, random)
    resampled = np.concatenate([rank_correlations(scores[rows], ratings[rows]) for rows in batches])
    # Values are NaN for constant resamples of small sets.
    low, high = np.nanquantile(resampled, [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2])
    return (float(low), float(high)) if high - low > 1e-12 else (float("nan"), float("nan"))


def resamples(n: int, count: int, random: np.random.Generator) -> Iterator[NDArray[np.int64]]:
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


def _p_value(scores: Floats, ratings: Floats) -> float:
    """Compute the two-sided p-value of Spearman's rho with a permutation test.

    The p-value is the share of permutations whose rho is at least as far from 0 as the observed rho. For
    up to eight items, all permutations are tried. For more items, 9,999 random permutations are tried. The
    observed order counts as the 10,000th permutation, so that the p-value is never 0 (Phipson and Smyth,
    "Permutation p-values should never be zero", 2010). Ties need no correction: permuting keeps them.

    Args:
        scores: (n,) scores of n items.
        ratings: (n,) ratings of the items.
    """
    a, b = (_centred_ranks(values) for values in (scores, ratings))
    least = abs((a * b).sum()) * (1 - 1e-9)  # the sums are exact up to 100,000 pairs
    if len(a) <= _MOST_EXACT:
        sums = b[np.array(list(permutations(range(len(b)))))] @ a
        return float((np.abs(sums) >= least).mean())
    random = np.random.default_rng(_SEED)
    extreme = sum(abs((a * random.permutation(b)).sum()) >= least for _ in range(_PERMUTATIONS))
    return float((extreme + 1) / (_PERMUTATIONS + 1))


def _centred_ranks(values: Floats) -> Floats:
    """Replace (n,) values by their ranks, shifted to mean 0; equal values get the mean of their ranks."""
    return np.asarray(stats.rankdata(values) - (len(values) + 1) / 2, float)
