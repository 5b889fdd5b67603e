"""Significance tests, how to choose between them, and the correction for several tests."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from simllm.array_types import Floats

_LEAST_EXPECTED = 5  # smallest expected count for a chi-squared test without permutations
_SEED = 12345
_DRAWS = 10_000
FEW_DISCORDANT = 25  # McNemar's exact test is chosen for fewer discordant items
_NORMAL = 0.05  # a t-test is chosen if the p-value of Shapiro and Wilk's test is at least this
_MOST_EXACT = 20  # largest number of differences for an exact test
MANY_DATA_SETS = 6  # from this number on, a test compares data sets instead of items


class Outcome(NamedTuple):
    """The outcome of a significance test, such as "mcnemar-exact".

    Attributes:
        df: Degrees of freedom; None if the test has none.
    """

    test: str
    statistic: float
    p: float
    df: int | None = None


def compare_with_chance(right: int, n: int, chance: float) -> Outcome:
    """Test whether an accuracy of `right` / `n` differs from `chance`, the accuracy of guessing."""
    from scipy.stats import binomtest

    return Outcome("binomial", float(right), float(binomtest(right, n, chance).pvalue))


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
    from scipy.stats import chi2_contingency, random_table

    table = np.array(right_wrong)
    if len(table) == 2:
        return fisher(right_wrong)
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


def fisher(table: Sequence[Sequence[int]]) -> Outcome:
    """Test two rows of two counts by Fisher's exact test; the statistic is the odds ratio, NaN for 0 / 0."""
    from scipy.stats import fisher_exact

    found = fisher_exact(table)
    # Rounding may give a little more than 1.
    return Outcome("fisher", float(found.statistic), min(1.0, float(found.pvalue)))


def choose_mcnemar(discordant: int) -> str:
    """Choose the exact or the chi-squared form of McNemar's test by the number of discordant items."""
    return "mcnemar-exact" if discordant < FEW_DISCORDANT else "mcnemar-chi2"


def mcnemar(only_a: int, only_b: int, name: str = "") -> Outcome:
    """Compare the accuracy of two classifiers by McNemar's test (1947).

    The arguments count the items that only the first, or only the second, classifier gets right. `name` is
    the form of the test; by default, the one that `choose_mcnemar` chooses.
    """
    from statsmodels.stats.contingency_tables import mcnemar as test

    name = name or choose_mcnemar(only_a + only_b)
    exact = name == "mcnemar-exact"
    found = test([[0, only_a], [only_b, 0]], exact=exact, correction=True)
    return Outcome(name, float(found.statistic), min(1.0, float(found.pvalue)), None if exact else 1)


def cochran_q(right: Floats) -> Outcome:
    """Compare three or more classifiers by Cochran's Q test (1950); `right` is (n, k), 0 or 1."""
    from statsmodels.stats.contingency_tables import cochrans_q

    k = right.shape[1]
    # Without a discordant item, statistic and p would be 0 / 0.
    if (right == right[:, :1]).all():
        return Outcome("cochran-q", 0.0, 1.0, k - 1)
    found = cochrans_q(right)
    return Outcome("cochran-q", float(found.statistic), float(found.pvalue), k - 1)


def choose_for_degradation(
    validation_folds: int, test_sets: int, shapiro_p: tuple[float, float] | None = None
) -> str:
    """Choose the test that compares a metric's values on validation folds with its values on test sets.

    The comparison shows whether a classifier gets worse on new data (degradation). `shapiro_p` are the
    p-values of the test of normality on both; None if there are fewer than 3 folds or 3 test sets.
    """
    if shapiro_p is None or min(validation_folds, test_sets) < 3:
        return "none: interval only"
    return "welch-t" if min(shapiro_p) >= _NORMAL else "mann-whitney"


class Samples(NamedTuple):
    """The outcome of a comparison, and the two p-values of the test of normality by which it was chosen.

    Attributes:
        shapiro_p: None if a sample has fewer than 3 values.
    """

    outcome: Outcome
    shapiro_p: tuple[float, float] | None


def compare_samples(a: Floats, b: Floats) -> Samples:
    """Test whether two independent samples, (n,) and (m,) values, differ.

    p is NaN if a sample has fewer than 3 values, or if both are constant with different values.
    """
    from scipy.stats import shapiro

    if min(len(a), len(b)) < 3:
        return Samples(Outcome(choose_for_degradation(len(a), len(b)), np.nan, np.nan), None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Shapiro's test of equal values, and equal samples
        normal = float(shapiro(a).pvalue), float(shapiro(b).pvalue)
        name = choose_for_degradation(len(a), len(b), normal)
        if name == "welch-t":  # also for constant values: their Shapiro's p is 1
            return Samples(welch(a, b), normal)
    return Samples(mann_whitney(a, b), normal)


def mann_whitney(a: Floats, b: Floats) -> Outcome:
    """Compare two samples, (n,) and (m,) values, by Mann and Whitney's rank test (1947), two-sided.

    p is exact for small samples without ties. Statistic and p are NaN if a sample is empty.
    """
    from scipy.stats import mannwhitneyu

    if not len(a) or not len(b):
        return Outcome("mann-whitney", math.nan, math.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # equal samples
        found = mannwhitneyu(a, b)
    return Outcome("mann-whitney", float(found.statistic), float(found.pvalue))


def welch(a: Floats, b: Floats) -> Outcome:
    """Compare the means of two samples, (n,) and (m,) values, by Welch's t-test (1947).

    The statistic is NaN if both samples are constant; p is then 1 for equal and NaN for different values.
    """
    from scipy.stats import ttest_ind

    if np.ptp(a) == np.ptp(b) == 0:  # without any spread, there is no error to compare with
        return Outcome("welch-t", math.nan, 1.0 if a[0] == b[0] else math.nan)
    found = ttest_ind(a, b, equal_var=False)
    return Outcome("welch-t", float(found.statistic), float(found.pvalue))


def rank_correlation(a: Floats, b: Floats) -> Outcome:
    """Test whether (n,) values are independent of other (n,) values by Spearman's rho, the statistic.

    p comes from the t distribution; `simllm.stats.correlation.spearman` takes time for one from permutations.
    Items with a NaN are left out. Rho and p are NaN for fewer than three items, or for constant values.
    """
    from scipy.stats import spearmanr

    known = ~np.isnan(a) & ~np.isnan(b)
    a, b = a[known], b[known]
    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return Outcome("spearman-t", math.nan, math.nan)
    found = spearmanr(a, b)
    return Outcome("spearman-t", float(found.statistic), float(found.pvalue))


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


def choose_for_classifiers(classifiers: int, data_sets: int = 1, runs: int = 1, discordant: int = 0) -> str:
    """Choose the significance test that compares two or more classifiers on the same items.

    `runs` is the largest number of runs of a classifier. `discordant` counts discordant items; it matters
    only for two classifiers with one run each.
    """
    if data_sets >= MANY_DATA_SETS:
        return "wilcoxon" if classifiers == 2 else "friedman-nemenyi"
    # McNemar and Cochran take one right or wrong for each item; with runs, an item has a share.
    if runs > 1:
        return "paired-permutation"
    if classifiers > 2:
        return "cochran-q"
    return choose_mcnemar(discordant)


class PairedEffect(NamedTuple):
    """Cohen's d of paired differences, and the smallest mean difference that such a sample can show."""

    d: float
    detectable: float


_POWER = 0.8  # the usual share of studies that are to find a true difference (Cohen, 1988)


def paired_effect(differences: Floats, tests: int = 1) -> PairedEffect:
    """Compute the effect size of (n,) paired differences, and what a sample of this size and spread can show.

    A true mean difference of `detectable` is significant (p < .05, with Bonferroni's correction for the
    number of tests) in 80% of such samples, in 75 to 80% with fewer than 10 items, if differences are normal.
    Both are NaN for a single item or without spread; `detectable` is NaN, too, if n items allow no such p.
    """
    from statistics import NormalDist

    n, alpha = len(differences), 0.05 / tests
    spread = float(differences.std(ddof=1)) if n > 1 else 0.0
    if not spread > 1e-12:  # NaN, or equal differences up to rounding
        return PairedEffect(math.nan, math.nan)
    d = float(differences.mean()) / spread
    # The p-values of an exact permutation test are multiples of 1 / 2^(n-1).
    steps = 2.0 ** (min(n, 50) - 1)  # more steps would overflow, and change nothing
    significant = math.floor(alpha * steps)
    if significant == 0:
        return PairedEffect(d, math.nan)
    normal = NormalDist()
    if significant == 1:  # only if all n differences have the same sign
        return PairedEffect(d, normal.inv_cdf(_POWER ** (1 / n)) * spread)
    quantile = normal.inv_cdf(1 - significant / steps / 2)
    # Guenther (1981): the t distribution costs half the squared quantile in items.
    items = n - quantile**2 / 2
    return PairedEffect(d, (quantile + normal.inv_cdf(_POWER)) * spread / math.sqrt(items))


def holm(p_values: Sequence[float] | Floats) -> list[float]:
    """Correct the p-values of a family of tests by Holm's method (1979), in the same order.

    The correction limits the probability of at least one false positive in the whole family.
    """
    # By hand, because `simllm compare` and `simllm repair` run without statsmodels.
    corrected, least = [math.nan] * len(p_values), 0.0
    # NaN is a test that was not possible: it stays NaN, and the family is smaller.
    order = [int(i) for i in np.argsort(p_values, kind="stable") if not math.isnan(p_values[i])]
    for rank, i in enumerate(order):
        least = max(least, min(1.0, float((len(order) - rank) * p_values[i])))
        corrected[i] = least
    return corrected


def holm_of_pairs(p: Floats) -> Floats:
    """Correct the (m, m) symmetric p-values of all pairs of m metrics by Holm's method; the diagonal is 1."""
    pairs = np.triu_indices(len(p), 1)
    corrected = np.ones_like(p)
    corrected[pairs] = holm(p[pairs])
    return np.minimum(corrected, corrected.T)
