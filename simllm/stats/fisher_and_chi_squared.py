"""Fisher's exact test and the chi-squared test, which compare accuracies between groups of items.

Fisher's test compares two groups, and the chi-squared test three or more.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simllm.stats.significance_outcome import Outcome

_LEAST_EXPECTED = 5  # smallest expected count for a chi-squared test without permutations
_SEED = 12345
_DRAWS = 10_000


def choose_for_groups(groups: int, smallest_expected: float = 0.0) -> str:
    """Choose the test that compares a classifier's accuracy between groups of items.

    Args:
        groups: The number of groups, at least 2.
        smallest_expected: The smallest expected count of the chi-squared test. The expected counts are the
            numbers of right and wrong predictions that each group would have if all groups had the same
            accuracy. With two groups, this argument is not used.

    Returns:
        The name of the test: "fisher" for two groups. For three or more groups, it is "chi2-permutation" (a
        chi-squared test by permutations) if the smallest expected count is below 5, and "chi2" otherwise.
    """
    if groups == 2:
        return "fisher"
    return "chi2-permutation" if smallest_expected < _LEAST_EXPECTED else "chi2"


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
