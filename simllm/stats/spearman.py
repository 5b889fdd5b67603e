"""Spearman's rank correlation between scores and ratings, with a p-value and a confidence interval."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from simllm.stats.correlation_coefficients import rank_correlations
from simllm.stats.correlation_intervals import bootstrap_interval

_SEED = 12345
_PERMUTATIONS = 9999
_MOST_EXACT = 8  # largest number of pairs for which all (at most 40,320) permutations are tried

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
    rho = float(rank_correlations(scores[None], ratings[None])[0])
    interval = bootstrap_interval(scores, ratings, np.random.default_rng(_SEED))
    return Correlation(rho, _p_value(scores, ratings), *interval)


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


def _centred_ranks(values: Floats) -> Floats:
    """Replace (n,) values by their ranks minus the mean of all ranks; equal values get the same mean rank."""
    return np.asarray(stats.rankdata(values) - (len(values) + 1) / 2, float)
