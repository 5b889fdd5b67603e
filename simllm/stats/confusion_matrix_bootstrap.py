"""Bootstrap of a confusion matrix: resampled metrics, and the quantiles that bound a 95% interval."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np

from simllm.array_types import Floats, Ints
from simllm.stats.paired_bootstrap_and_permutation import LEAST_ITEMS

_RESAMPLES, _SEED = 10_000, 12345


def bootstrap(
    counts: Ints,
    metrics: Callable[[Ints], dict[str, Floats]],
    seed: int = _SEED,
    items: int | None = None,
) -> dict[str, Floats]:
    """Compute `metrics`, such as `binary_metrics`, of 10,000 resamples of a (k, k + 1) confusion matrix.

    `items` is the number of items in a resample, by default the sum of the counts. If an item is counted
    several times, pass the number of distinct items: predictions for one item are not independent, so the
    default would give too narrow intervals. The first axis of each returned array is the resample.
    """
    total = int(counts.sum())
    size = max(1, items if items is not None else total)
    # The cells of a resample follow a multinomial distribution. Drawing them directly, instead of the items,
    # makes the time independent of the number of items.
    draws = np.random.default_rng(seed).multinomial(size, counts.ravel() / total, size=_RESAMPLES)
    return metrics(draws.reshape(-1, *counts.shape))


def quantiles(values: Floats, items: int) -> tuple[float, float]:
    """Return the 2.5% and 97.5% quantiles of (n,) resampled values, without NaN: a bootstrap interval.

    Both are NaN with fewer than `LEAST_ITEMS` items in a resample, without spread, or if all values are NaN.
    """
    if items < LEAST_ITEMS:
        return math.nan, math.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no value
        low, high = np.nanquantile(values, [0.025, 0.975])
    return (float(low), float(high)) if high - low > 1e-12 else (math.nan, math.nan)
