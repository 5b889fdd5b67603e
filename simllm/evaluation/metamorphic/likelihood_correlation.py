"""The correlation of the loss on rewritten code with the likelihood of the original code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simllm.evaluation.metamorphic.item_outcome import ItemOutcome

Floats = NDArray[np.float64]
_FEWEST = 3  # items for a correlation


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's correlation of negative log-likelihood and difference; None if it is not defined."""

    n: int
    rho: float | None
    p: float | None


@dataclass(frozen=True)
class Likelihood:
    """The correlation of difference and negative log-likelihood (NLL).

    Attributes:
        median: The median NLL.
        all: Over all items.
        below_median: Over the items with a smaller NLL, which a model may have read; the published figure.
        above_median: Over the items with a larger NLL.
    """

    median: float
    all: RankCorrelation
    below_median: RankCorrelation
    above_median: RankCorrelation


def correlate_with_likelihood(outcomes: Sequence[ItemOutcome]) -> Likelihood | None:
    """Correlate the difference with the negative log-likelihood; None if no item has one."""
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
    """Compute Spearman's correlation; None under three items, or if a side is constant."""
    from scipy.stats import spearmanr

    n = len(a)
    if n < _FEWEST or np.ptp(a) == 0 or np.ptp(b) == 0:
        return RankCorrelation(n, None, None)
    found = spearmanr(a, b)
    return RankCorrelation(n, float(found.statistic), float(found.pvalue))
