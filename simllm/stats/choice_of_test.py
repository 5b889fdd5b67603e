"""The choice of the significance test for a comparison of classifiers, and the outcome of a test."""

from __future__ import annotations

from typing import NamedTuple

FEW_DISCORDANT = 25  # McNemar's exact test is chosen for fewer discordant items
MANY_DATA_SETS = 6  # from this number on, a test compares data sets instead of items
LEAST_EXPECTED = 5  # smallest expected count for a chi-squared test without permutations
NORMAL = 0.05  # a t-test is chosen if the p-value of Shapiro and Wilk's test is at least this


class Outcome(NamedTuple):
    """The outcome of a significance test.

    Attributes:
        test: The name of the test, such as "mcnemar-exact".
        statistic: The test statistic.
        p: The two-sided p-value.
        df: Degrees of freedom; None if the test has none.
    """

    test: str
    statistic: float
    p: float
    df: int | None = None


def choose_for_classifiers(classifiers: int, data_sets: int = 1, runs: int = 1, discordant: int = 0) -> str:
    """Choose the significance test that compares classifiers on the same items.

    Args:
        classifiers: The number of classifiers, at least 2.
        data_sets: The number of data sets.
        runs: The number of runs of each classifier; each run gives one prediction for each item. If the
            classifiers have different numbers of runs, pass the largest number.
        discordant: The number of items that exactly one of the two classifiers gets right. It matters only
            for two classifiers with one run each.

    Returns:
        The name of the test, by the first case that applies:

        - six or more data sets: "wilcoxon" for two classifiers, "friedman-nemenyi" for more
        - two or more runs: "paired-permutation"
        - three or more classifiers: "cochran-q"
        - two classifiers: "mcnemar-exact" if `discordant` is below 25, otherwise "mcnemar-chi2"
    """
    if data_sets >= MANY_DATA_SETS:
        return "wilcoxon" if classifiers == 2 else "friedman-nemenyi"
    if runs > 1:
        return "paired-permutation"
    if classifiers > 2:
        return "cochran-q"
    return "mcnemar-exact" if discordant < FEW_DISCORDANT else "mcnemar-chi2"


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
    return "chi2-permutation" if smallest_expected < LEAST_EXPECTED else "chi2"


def choose_for_degradation(
    validation_folds: int, test_sets: int, shapiro_p: tuple[float, float] | None = None
) -> str:
    """Choose the test that compares a metric's values on validation folds with its values on test sets.

    The comparison shows whether a classifier gets worse on new data (degradation).

    Args:
        validation_folds: The number of folds.
        test_sets: The number of test sets.
        shapiro_p: Two p-values of Shapiro and Wilk's test of normality: one for the values on the folds, one
            for the values on the test sets. None if there are fewer than 3 folds or fewer than 3 test sets.

    Returns:
        The name of the test: "welch-t" (a t-test) if both p-values are at least 0.05, otherwise
        "mann-whitney". If there are fewer than 3 folds or fewer than 3 test sets, no test is possible, and
        the result is "none: interval only".
    """
    if shapiro_p is None or min(validation_folds, test_sets) < 3:
        return "none: interval only"
    return "welch-t" if min(shapiro_p) >= NORMAL else "mann-whitney"
