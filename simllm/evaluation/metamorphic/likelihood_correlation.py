"""Do tools lose more on code that a model finds likely? A correlation over items.

The difference of an item is its success rate on the rewritten code minus that on the original.
"""

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
    """Spearman's correlation between negative log-likelihood and difference, over some items.

    The numbers are None if the correlation is not defined.
    """

    n: int
    rho: float | None
    p: float | None


@dataclass(frozen=True)
class Likelihood:
    """Correlations between the difference of items and their negative log-likelihood (NLL).

    Attributes:
        median: The median NLL.
        all: The correlation over all items.
        below_median: The correlation over the items whose NLL is below the median. A model may have read
            their code in training. The published study gives this figure.
        above_median: The correlation over the items whose NLL is above the median.
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
    """Compute Spearman's correlation; not defined for fewer than three items, or if all values are equal."""
    from scipy.stats import spearmanr

    n = len(a)
    if n < _FEWEST or np.ptp(a) == 0 or np.ptp(b) == 0:
        return RankCorrelation(n, None, None)
    found = spearmanr(a, b)
    return RankCorrelation(n, float(found.statistic), float(found.pvalue))
