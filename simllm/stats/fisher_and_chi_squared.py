"""Fisher's exact test (two groups) and the chi-squared test (more groups), which compare accuracies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simllm.stats.significance_outcome import Outcome

_LEAST_EXPECTED = 5  # smallest expected count for a chi-squared test without permutations
_SEED = 12345
_DRAWS = 10_000


def choose_for_groups(groups: int, smallest_expected: float = 0.0) -> str:
    """Choose the test that compares a classifier's accuracy between two or more groups of items.

    The expected counts are the right and wrong predictions that each group would have if all groups had the
    same accuracy. Two groups do not use them.
    """
    if groups == 2:
        return "fisher"
    return "chi2-permutation" if smallest_expected < _LEAST_EXPECTED else "chi2"


def compare_groups(right_wrong: Sequence[Sequence[int]]) -> Outcome:
    """Test whether a classifier's accuracy differs between groups: for each, the right and wrong predictions.

    Each group has at least one prediction.
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
    # The observed table counts as one more draw, so that p is never 0.
    p = float(((simulated >= statistic - 1e-9).sum() + 1) / (_DRAWS + 1))
    return Outcome(name, statistic, p, df)
