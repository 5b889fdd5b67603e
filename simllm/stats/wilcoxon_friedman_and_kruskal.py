"""Rank tests of Wilcoxon, of Friedman (with Nemenyi's post-hoc test), and of Kruskal and Wallis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from simllm.array_types import Floats
from simllm.stats.significance_outcome import Outcome

_MOST_EXACT = 20  # largest number of differences for an exact test


def wilcoxon(a: Floats, b: Floats) -> Outcome:
    """Compare (n,) values of two classifiers on n data sets by Wilcoxon's signed-rank test (1945).

    Data sets with a difference of 0 are dropped.
    """
    from scipy.stats import rankdata
    from scipy.stats import wilcoxon as asymptotic

    differences = np.round(a - b, 12)
    differences = differences[differences != 0]
    if not len(differences):
        return Outcome("wilcoxon", 0.0, 1.0)
    ranks = rankdata(np.abs(differences))
    statistic = float(min(ranks[differences > 0].sum(), ranks[differences < 0].sum()))
    if len(differences) > _MOST_EXACT:
        found = asymptotic(differences, method="asymptotic", correction=False)
        return Outcome("wilcoxon", statistic, float(found.pvalue))
    # Exact even with ties, by the distribution over all 2^n choices of signs; scipy's assumes no ties.
    doubled = np.round(2 * ranks).astype(int)  # mean ranks are halves
    ways = np.zeros(doubled.sum() + 1)  # for each doubled sum of ranks, how many signs give it
    ways[0] = 1
    for rank in doubled:
        ways[rank:] = ways[rank:] + ways[:-rank]
    p = 2 * ways[: round(2 * statistic) + 1].sum() / ways.sum()
    return Outcome("wilcoxon", statistic, min(1.0, float(p)))


class Ranks(NamedTuple):
    """The outcome of Friedman's test with Nemenyi's post-hoc test.

    Attributes:
        mean_ranks: (k,) mean rank of each classifier over the data sets; 1 is the best.
        critical_difference: The smallest difference between two mean ranks that is significant.
        p: (k, k) p-values of Nemenyi's test.
    """

    outcome: Outcome
    mean_ranks: Floats
    critical_difference: float
    p: Floats


def friedman_nemenyi(values: Floats, alpha: float = 0.05) -> Ranks:
    """Compare k >= 3 classifiers on n data sets by Friedman's and Nemenyi's tests (Demšar, 2006).

    `values` is (n, k), higher is better; `alpha` is the significance level of the critical difference.
    """
    from scipy.stats import friedmanchisquare, rankdata, studentized_range

    n, k = values.shape
    values = np.round(values, 12)  # so that equal values stay equal after arithmetic
    ranks = rankdata(-values, axis=1).mean(axis=0)
    error = np.sqrt(k * (k + 1) / (12 * n))
    q = np.abs(ranks[:, None] - ranks) / error
    p = studentized_range.sf(q, k, np.inf)
    np.fill_diagonal(p, 1.0)
    critical = float(studentized_range.ppf(1 - alpha, k, np.inf) * error)
    if (values == values[:, :1]).all():
        return Ranks(Outcome("friedman-nemenyi", 0.0, 1.0, k - 1), ranks, critical, p)
    found = friedmanchisquare(*values.T)
    outcome = Outcome("friedman-nemenyi", float(found.statistic), float(found.pvalue), k - 1)
    return Ranks(outcome, ranks, critical, p)


def compare_group_means(values: Sequence[Floats]) -> Outcome:
    """Test whether values differ between groups of items, by Kruskal and Wallis' rank test (1952).

    Each group has an array with one value for each item, such as the share of runs that are right.
    """
    from scipy.stats import kruskal

    if np.ptp(np.concatenate(values)) == 0:
        return Outcome("kruskal-wallis", 0.0, 1.0, len(values) - 1)
    found = kruskal(*values)
    return Outcome("kruskal-wallis", float(found.statistic), float(found.pvalue), len(values) - 1)
