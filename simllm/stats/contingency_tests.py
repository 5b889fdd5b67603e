"""Significance tests of counts: the tests of McNemar, Cochran and Fisher, binomial and chi-squared tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simllm.stats.choice_of_test import FEW_DISCORDANT, Outcome, choose_for_classifiers, choose_for_groups

Floats = NDArray[np.float64]
_SEED = 12345
_DRAWS = 10_000


def compare_with_chance(right: int, n: int, chance: float) -> Outcome:
    """Test whether the accuracy of a classifier differs from the accuracy of guessing (binomial test).

    Args:
        right: The number of right predictions.
        n: The number of predictions.
        chance: The accuracy of guessing.
    """
    from scipy.stats import binomtest

    return Outcome("binomial", float(right), float(binomtest(right, n, chance).pvalue))


def mcnemar(only_a: int, only_b: int) -> Outcome:
    """Compare the accuracy of two classifiers by McNemar's test (1947).

    The test uses the items that exactly one of the two classifiers gets right.

    Args:
        only_a: The number of items that only the first classifier gets right.
        only_b: The number of items that only the second classifier gets right.
    """
    from statsmodels.stats.contingency_tables import mcnemar as test

    exact = only_a + only_b < FEW_DISCORDANT
    found = test([[0, only_a], [only_b, 0]], exact=exact, correction=True)
    name = choose_for_classifiers(2, discordant=only_a + only_b)
    return Outcome(name, float(found.statistic), min(1.0, float(found.pvalue)), None if exact else 1)


def cochran_q(right: Floats) -> Outcome:
    """Compare the accuracy of three or more classifiers by Cochran's Q test (1950).

    Args:
        right: (n, k) array for n items and k classifiers: 1 if the classifier is right on the item, else 0.
    """
    from statsmodels.stats.contingency_tables import cochrans_q

    k = right.shape[1]
    if (right == right[:, :1]).all():
        return Outcome("cochran-q", 0.0, 1.0, k - 1)
    found = cochrans_q(right)
    return Outcome("cochran-q", float(found.statistic), float(found.pvalue), k - 1)


def compare_groups(right_wrong: Sequence[Sequence[int]]) -> Outcome:
    """Test whether a classifier's accuracy differs between groups of items.

    Args:
        right_wrong: For each group, two counts: its right predictions and its wrong predictions. Each group
            has at least one prediction.

    Returns:
        For two groups, the outcome of Fisher's exact test; for more groups, that of a chi-squared test.
    """
    from scipy.stats import chi2_contingency, fisher_exact, random_table

    table = np.array(right_wrong)
    if len(table) == 2:
        found = fisher_exact(table)
        return Outcome("fisher", float(found.statistic), min(1.0, float(found.pvalue)))
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    df = len(table) - 1
    if not columns.all():  # all are right, or all are wrong
        return Outcome("chi2", 0.0, 1.0, df)
    expected = np.outer(rows, columns) / table.sum()
    statistic = float(((table - expected) ** 2 / expected).sum())
    name = choose_for_groups(len(table), float(expected.min()))
    if name == "chi2":
        return Outcome(name, statistic, float(chi2_contingency(table, correction=False).pvalue), df)
    drawn = random_table(rows, columns).rvs(_DRAWS, random_state=np.random.default_rng(_SEED))
    simulated = ((drawn - expected) ** 2 / expected).sum(axis=(1, 2))
    p = float(((simulated >= statistic - 1e-9).sum() + 1) / (_DRAWS + 1))
    return Outcome(name, statistic, p, df)
