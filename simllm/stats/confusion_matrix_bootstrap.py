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
    """Compute metrics of 10,000 bootstrap resamples of a confusion matrix.

    The items are not resampled one by one. The confusion matrix of each resample is drawn directly from a
    multinomial distribution, so that the time does not grow with the number of items.

    Args:
        counts: (k, k + 1) confusion matrix for k classes; at least one count is positive. The last column
            counts outputs from which no class could be read.
        metrics: The function that computes metrics of an array of matrices, such as `binary_metrics`.
        seed: The random seed.
        items: The number of items in a resample; by default the sum of the counts. If each item is counted
            several times, with several predictions, pass the number of distinct items. The predictions for
            one item are not independent, so the default would give too narrow intervals.

    Returns:
        The result of `metrics` for the 10,000 resampled matrices: a dict from the name of each metric to an
        array, whose first axis is the resample.
    """
    total = int(counts.sum())
    size = max(1, items if items is not None else total)
    draws = np.random.default_rng(seed).multinomial(size, counts.ravel() / total, size=_RESAMPLES)
    return metrics(draws.reshape(-1, *counts.shape))


def quantiles(values: Floats, items: int) -> tuple[float, float]:
    """Return the 2.5% and 97.5% quantiles of resampled values: the ends of a 95% bootstrap interval.

    Args:
        values: (n,) value of a metric in each of n resamples. NaN values are left out.
        items: The number of items in a resample.

    Returns:
        The lower and the upper quantile. Both are NaN if all values are NaN, or if the interval would look
        too certain: with fewer than `LEAST_ITEMS` items, or if the resamples show no spread.
    """
    if items < LEAST_ITEMS:
        return math.nan, math.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no value
        low, high = np.nanquantile(values, [0.025, 0.975])
    return (float(low), float(high)) if high - low > 1e-12 else (math.nan, math.nan)
