"""Correlation between the NLL of code and the effect of rewriting it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simllm.array_types import Floats
from simllm.evaluation.metamorphic.item_outcome import ItemOutcome

_FEWEST = 3  # items for a correlation


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's correlation over n items; `rho` and `p` are None if it is not defined."""

    n: int
    rho: float | None
    p: float | None


@dataclass(frozen=True)
class Likelihood:
    """Correlations between the NLL and the difference of items.

    Attributes:
        median: The median NLL of the items.
        all: The correlation over all items.
        below_median: The correlation that the thesis reports, over the items whose NLL is below the median.
            Language models may have read the code of these items in training.
        above_median: The correlation over the items whose NLL is above the median.
    """

    median: float
    all: RankCorrelation
    below_median: RankCorrelation
    above_median: RankCorrelation


def correlate_with_likelihood(outcomes: Sequence[ItemOutcome]) -> Likelihood | None:
    """Correlate the NLL with the difference, over the items with an NLL; None if there are none."""
    known = [(one.nll, one.difference) for one in outcomes if one.nll is not None]
    if not known:
        return None
    nll, difference = np.array(known).T
    median = float(np.median(nll))
    below, above = nll < median, nll > median
    return Likelihood(
        median,
        _correlate(nll, difference),
        _correlate(nll[below], difference[below]),
        _correlate(nll[above], difference[above]),
    )


def _correlate(a: Floats, b: Floats) -> RankCorrelation:
    """Compute Spearman's correlation of two (n,) arrays."""
    from scipy.stats import spearmanr

    n = len(a)
    if n < _FEWEST or np.ptp(a) == 0 or np.ptp(b) == 0:
        return RankCorrelation(n, None, None)
    found = spearmanr(a, b)
    return RankCorrelation(n, float(found.statistic), float(found.pvalue))
