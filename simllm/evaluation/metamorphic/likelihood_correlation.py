"""Correlation between the negative log-likelihood of code and the effect of rewriting the code.

The negative log-likelihood (NLL) is that of the original code under a language model. A tool is a program
that reads code and writes an answer, such as a summary or corrected code. Its success rate is the share of
right answers. The effect is the success rate on the rewritten code minus that on the original code. The
effect is negative if rewriting harms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simllm.array_types import Floats
from simllm.evaluation.metamorphic.item_outcome import ItemOutcome

_FEWEST = 3  # items for a correlation


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's correlation between the negative log-likelihood of code and the effect of rewriting.

    Each item is a piece of code. The negative log-likelihood is the mean over the tokens of the original
    code. A tool is a program that reads code and writes an answer, such as a summary or corrected code. Its
    success rate is the share of right answers. The effect is the success rate on the rewritten code minus
    that on the original code.

    Attributes:
        n: The number of items.
        rho: The correlation; None if it is not defined.
        p: The two-sided p-value; None if the correlation is not defined.
    """

    n: int
    rho: float | None
    p: float | None


@dataclass(frozen=True)
class Likelihood:
    """Correlations between the negative log-likelihood (NLL) of code and the effect of rewriting the code.

    Each item is a piece of code. The NLL is that of the original code under a language model. A tool is a
    program that reads code and writes an answer, such as a summary or corrected code. Its success rate is the
    share of right answers. The effect is the success rate on the rewritten code minus that on the original
    code.

    Attributes:
        median: The median NLL of the items.
        all: The correlation over all items.
        below_median: The correlation over the items whose NLL is below the median. Language models may have
            read the code of these items in training. The thesis by de Koning (see
            `metamorphic_fisher_and_mcnemar`) reports this correlation.
        above_median: The correlation over the items whose NLL is above the median.
    """

    median: float
    all: RankCorrelation
    below_median: RankCorrelation
    above_median: RankCorrelation


def correlate_with_likelihood(outcomes: Sequence[ItemOutcome]) -> Likelihood | None:
    """Correlate the negative log-likelihood (NLL) of code with the effect of rewriting the code.

    The NLL is that of the original code under a language model. The effect is a tool's success rate on the
    rewritten code minus that on the original code. A tool is a program that reads code and writes an answer,
    such as a summary or corrected code.

    Args:
        outcomes: For each item (piece of code), its NLL and the tool's successes; items without an NLL are
            left out.

    Returns:
        The correlations; None if no item has an NLL.
    """
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
    """Compute Spearman's correlation of two arrays of n values.

    It is not defined for fewer than three values, or if all values of an array are equal.
    """
    from scipy.stats import spearmanr

    n = len(a)
    if n < _FEWEST or np.ptp(a) == 0 or np.ptp(b) == 0:
        return RankCorrelation(n, None, None)
    found = spearmanr(a, b)
    return RankCorrelation(n, float(found.statistic), float(found.pvalue))
