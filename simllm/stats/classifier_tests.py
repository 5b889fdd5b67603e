"""Significance tests of classifiers, and functions that choose the test for a comparison."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simllm.stats.paired_significance_tests import sign_flip_p

Floats = NDArray[np.float64]
FEW_DISCORDANT = 25  # McNemar's exact test is chosen for fewer discordant items
MANY_DATA_SETS = 6  # from this number on, a test compares data sets instead of items
LEAST_EXPECTED = 5  # smallest expected count for a chi-squared test without permutations
NORMAL = 0.05  # a t-test is chosen if the p-value of Shapiro and Wilk's test is at least this
_MOST_EXACT = 20  # largest number of differences for an exact test
_SEED = 12345
_DRAWS = 10_000


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


def paired_permutation(differences: Floats) -> Outcome:
    """Test whether paired differences are symmetric around 0, by a permutation test that flips signs.

    Args:
        differences: (n,) differences, one for each item. For example, if one classifier is right on an item
            in 4 of 5 runs and another classifier in 3 of 5 runs, the difference is 0.2.

    Returns:
        The outcome; its test statistic is the mean difference.
    """
    p = sign_flip_p(differences, np.random.default_rng(_SEED))
    return Outcome("paired-permutation", float(differences.mean()), p)


def wilcoxon(a: Floats, b: Floats) -> Outcome:
    """Compare a metric of two classifiers over data sets by Wilcoxon's signed-rank test (1945).

    Data sets with a difference of 0 are dropped. The test is exact for up to 20 remaining data sets, even
    if some differences are equally large.

    Args:
        a: (n,) values of a metric for the first classifier, one for each data set.
        b: (n,) values for the second classifier.
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
        outcome: The outcome of Friedman's test.
        mean_ranks: (k,) mean rank of each classifier over the data sets; 1 is the best.
        critical_difference: The smallest difference between two mean ranks that is significant.
        p: (k, k) p-values of Nemenyi's test: entry (i, j) compares the classifiers i and j.
    """

    outcome: Outcome
    mean_ranks: Floats
    critical_difference: float
    p: Floats


def friedman_nemenyi(values: Floats, alpha: float = 0.05) -> Ranks:
    """Compare three or more classifiers over data sets by Friedman's and Nemenyi's tests (Demšar, 2006).

    Friedman's test compares all classifiers at once; Nemenyi's post-hoc test compares every two of them.

    Args:
        values: (n, k) values of a metric for k classifiers on n data sets; higher is better.
        alpha: The significance level of the critical difference, which is the smallest significant difference
            between the mean ranks of two classifiers.
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


def compare_group_means(values: Sequence[Floats]) -> Outcome:
    """Test whether values differ between groups of items, by Kruskal and Wallis' rank test (1952).

    Args:
        values: For each group, an array with one value for each of its items. An example is the share of runs
            in which a classifier is right on the item.
    """
    from scipy.stats import kruskal

    if np.ptp(np.concatenate(values)) == 0:
        return Outcome("kruskal-wallis", 0.0, 1.0, len(values) - 1)
    found = kruskal(*values)
    return Outcome("kruskal-wallis", float(found.statistic), float(found.pvalue), len(values) - 1)


class Samples(NamedTuple):
    """The outcome of a test that compares two independent samples.

    Attributes:
        outcome: The outcome of the test.
        shapiro_p: The p-values of Shapiro and Wilk's test of normality, one for each sample. They decide
            which test compares the samples. None if a sample has fewer than 3 values.
    """

    outcome: Outcome
    shapiro_p: tuple[float, float] | None


def compare_samples(a: Floats, b: Floats) -> Samples:
    """Test whether two independent samples differ, by Welch's t-test or Mann and Whitney's test.

    For example, the samples are a metric's values on validation folds and on test sets. The t-test is used if
    Shapiro and Wilk's test finds no deviation from normality in either sample (p >= 0.05).

    Args:
        a: (n,) values of the first sample.
        b: (m,) values of the second sample.

    Returns:
        The outcome of the test, and the p-values of Shapiro and Wilk's test. The p-value of the outcome is
        NaN in two cases:

        - A sample has fewer than 3 values. Then no test is made.
        - Both samples are constant, with different values. Then there is no spread to compare with.
    """
    from scipy.stats import mannwhitneyu, shapiro, ttest_ind

    if min(len(a), len(b)) < 3:
        return Samples(Outcome(choose_for_degradation(len(a), len(b)), np.nan, np.nan), None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Shapiro's test of equal values, and equal samples
        normal = float(shapiro(a).pvalue), float(shapiro(b).pvalue)
        name = choose_for_degradation(len(a), len(b), normal)
        found = ttest_ind(a, b, equal_var=False) if name == "welch-t" else mannwhitneyu(a, b)
    p = float(found.pvalue)
    if np.ptp(a) == np.ptp(b) == 0:  # without any spread, there is no error to compare with
        return Samples(Outcome(name, np.nan, 1.0 if a[0] == b[0] else np.nan), normal)
    return Samples(Outcome(name, float(found.statistic), 1.0 if p != p else p), normal)
