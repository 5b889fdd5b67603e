"""Spearman's rank correlation between scores and ratings, with a p-value and a confidence interval."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from simllm.array_types import Floats
from simllm.stats.paired_bootstrap_and_permutation import LEAST_ITEMS

_SEED = 12345
_RESAMPLES, _CONFIDENCE = 2000, 0.95
_AT_ONCE = 1_000_000  # numbers in a batch of resamples
_PERMUTATIONS = 9999
_MOST_EXACT = 8  # largest number of pairs for which all (at most 40,320) permutations are tried


@dataclass(frozen=True)
class Correlation:
    """Spearman's rho with the p-value for independence, and the bounds of its bootstrap interval."""

    rho: float
    p_value: float
    low: float
    high: float


def spearman(scores: Floats, ratings: Floats) -> Correlation:
    """Compute Spearman's rank correlation of (n,) scores and (n,) ratings.

    All results are NaN if the scores or the ratings are constant or have a NaN.
    """
    if np.ptp(scores) == 0 or np.ptp(ratings) == 0 or np.isnan([scores, ratings]).any():
        return Correlation(*[float("nan")] * 4)
    rho = float(rank_correlations(scores[None], ratings[None])[0])
    interval = bootstrap_interval(scores, ratings, np.random.default_rng(_SEED))
    return Correlation(rho, _p_value(scores, ratings), *interval)


def rank_correlations(a: Floats, b: Floats) -> Floats:
    """Compute k Spearman correlations, of each row of `a` and `b`, both (k, n); NaN for constant rows."""
    ranks = [stats.rankdata(values, axis=1) for values in (a, b)]
    centred = [r - r.mean(axis=1, keepdims=True) for r in ranks]
    covariance = (centred[0] * centred[1]).sum(axis=1)
    scale = np.sqrt((centred[0] ** 2).sum(axis=1) * (centred[1] ** 2).sum(axis=1))
    return np.clip(np.divide(covariance, scale, out=np.full_like(scale, np.nan), where=scale > 0), -1, 1)


def bootstrap_interval(scores: Floats, ratings: Floats, random: np.random.Generator) -> tuple[float, float]:
    """Compute the 2.5% and 97.5% quantiles of Spearman's rho in 2,000 resamples of the items.

    Both are NaN with fewer than `LEAST_ITEMS` items, or if the resamples show no spread.
    """
    if len(scores) < LEAST_ITEMS:
        return math.nan, math.nan
    batches = resamples(len(scores), _RESAMPLES, random)
    resampled = np.concatenate([rank_correlations(scores[rows], ratings[rows]) for rows in batches])
    # Values are NaN for constant resamples of small sets.
    low, high = np.nanquantile(resampled, [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2])
    return (float(low), float(high)) if high - low > 1e-12 else (float("nan"), float("nan"))


def resamples(n: int, count: int, random: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Draw `count` bootstrap resamples of n items, as (k, n) arrays of item numbers, k resamples in each."""
    size = max(1, min(100, _AT_ONCE // n))
    for start in range(0, count, size):
        yield random.integers(n, size=(min(size, count - start), n))


def _p_value(scores: Floats, ratings: Floats) -> float:
    """Compute the share of permutations whose rho is at least as far from 0 as the observed rho."""
    a, b = (_centred_ranks(values) for values in (scores, ratings))
    least = abs((a * b).sum()) * (1 - 1e-9)  # the sums are exact up to 100,000 pairs
    if len(a) <= _MOST_EXACT:
        sums = b[np.array(list(permutations(range(len(b)))))] @ a
        return float((np.abs(sums) >= least).mean())
    # The observed order counts as the 10,000th permutation, so that p is never 0 (Phipson and Smyth,
    # "Permutation p-values should never be zero", 2010). Ties need no correction: permuting keeps them.
    random = np.random.default_rng(_SEED)
    extreme = sum(abs((a * random.permutation(b)).sum()) >= least for _ in range(_PERMUTATIONS))
    return float((extreme + 1) / (_PERMUTATIONS + 1))


def _centred_ranks(values: Floats) -> Floats:
    """Replace (n,) values by their ranks, shifted to mean 0; equal values get the mean of their ranks."""
    return np.asarray(stats.rankdata(values) - (len(values) + 1) / 2, float)
