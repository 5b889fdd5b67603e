"""How far raters agree with each other, and so how far any metric could agree with them."""

from __future__ import annotations

from dataclasses import dataclass

import krippendorff
import numpy as np
from numpy.typing import NDArray
from scipy import stats

_SPLITS, _SEED = 200, 12345

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Agreement:
    """Of the raters of one set."""

    raters: int
    alpha_ordinal: float  # Krippendorff's alpha
    alpha_interval: float
    split_half: float  # Spearman's rho of the mean ratings of two random halves of the raters
    ceiling: float  # what a metric can be expected to reach against the mean of all raters
    one_against_rest: list[float]  # a rater: rho with the mean of the others


def agreement(raters: Floats) -> Agreement | None:
    """From (n, raters) ratings, NaN where there is none; None where no item has two, or all are alike."""
    rated = raters[(~np.isnan(raters)).sum(axis=1) >= 2]
    if len(rated) < 3 or np.nanmin(rated) == np.nanmax(rated):
        return None
    ordinal, interval = (
        float(krippendorff.alpha(rated.T, level_of_measurement=level)) for level in ("ordinal", "interval")
    )
    half = _split_half(rated)
    return Agreement(rated.shape[1], ordinal, interval, half, ceiling(half), _one_against_rest(rated))


def ceiling(split_half: float) -> float:
    """The root of the reliability of all raters' mean, which is 2 r / (1 + r) (Spearman and Brown, 1910).

    Half of the raters is noisier than all of them, and noise in the ratings costs a perfect
    metric only its root. NaN where the halves do not agree at all.
    """
    return float(np.sqrt(2 * split_half / (1 + split_half))) if split_half > 0 else float("nan")


def _split_half(raters: Floats) -> float:
    """The mean over random splits of the raters; an item that only one half rated is left out."""
    random = np.random.default_rng(_SEED)
    found = []
    for _ in range(_SPLITS):
        first, second = np.array_split(random.permutation(raters.T), 2)
        both = ~(np.isnan(first).all(axis=0) | np.isnan(second).all(axis=0))
        means = [np.nanmean(half[:, both], axis=0) for half in (first, second)]
        if all(len(mean) and np.ptp(mean) > 0 for mean in means):
            found.append(stats.spearmanr(*means).statistic)
    return float(np.mean(found)) if found else float("nan")


def _one_against_rest(raters: Floats) -> list[float]:
    """NaN for a rater who gave one rating throughout."""
    found = []
    for rater in range(raters.shape[1]):
        rest = np.delete(raters, rater, axis=1)
        both = ~np.isnan(raters[:, rater]) & ~np.isnan(rest).all(axis=1)
        own = raters[both, rater]
        others = np.nanmean(rest[both], axis=1)
        defined = len(own) > 2 and np.ptp(own) > 0 and np.ptp(others) > 0
        found.append(float(stats.spearmanr(own, others).statistic) if defined else float("nan"))
    return found
