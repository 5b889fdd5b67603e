"""Correlations and their p-values, tests of differences between metrics, and pairwise accuracy."""

import itertools
import tracemalloc

import numpy as np
import pytest
from scipy import stats

from simllm.stats.correlation import (
    clusters,
    kendall,
    pairwise_accuracy,
    pearson,
    permutation_p_values,
    spearman,
    williams,
)


def test_spearman_by_hand():
    a, b = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), np.array([2.0, 1.0, 4.0, 3.0, 5.0, 6.0])
    five = spearman(a[:5], b[:5])
    assert five.rho == pytest.approx(1 - 6 * 4 / (5 * 24))
    assert np.isnan([five.low, five.high]).all()  # resamples of five items do not reach 95%
    six = spearman(a, b)
    assert six.low < six.rho <= six.high


def test_a_missing_score_gives_no_p_value():
    found = spearman(np.array([1.0, np.nan, 3.0, 4.0]), np.array([1.0, 2.0, 3.0, 5.0]))
    assert np.isnan([found.rho, found.p_value, found.low, found.high]).all()


@pytest.mark.slow
def test_interval_has_its_nominal_coverage():
    random = np.random.default_rng(0)
    covered = 0
    for _ in range(60):
        x = random.normal(size=80)
        result = spearman(x, 0.7 * x + random.normal(size=80))
        covered += result.low < 0.552 < result.high  # Spearman's rho of a bivariate normal: 6/pi asin(r/2)
    assert 50 <= covered <= 60


def test_p_value_of_three_ordered_pairs():
    """The p-value is 2/6, because two of the six orders of three items have a correlation of 1 or -1."""
    assert spearman(np.array([1.0, 2.0, 3.0]), np.array([5.0, 6.0, 9.0])).p_value == pytest.approx(1 / 3)


@pytest.mark.parametrize("n", [4, 5, 6])
def test_p_values_of_few_pairs_are_exact(n):
    random = np.random.default_rng(n)
    for _ in range(3):
        a, b = random.integers(4, size=(2, n)).astype(float)  # with ties
        a[0], b[0] = 9, 9  # not constant
        exact = stats.permutation_test(
            (b,),
            lambda x, a=a: np.abs(stats.spearmanr(x, a).statistic),
            permutation_type="pairings",
            n_resamples=np.inf,
            alternative="greater",
        ).pvalue
        assert spearman(a, b).p_value == pytest.approx(exact)


def test_p_values_of_many_pairs_are_near_the_t_approximation():
    random = np.random.default_rng(0)
    for weight in (0.0, 0.2, 0.3):
        a = random.normal(size=80)
        b = weight * a + random.normal(size=80)
        assert spearman(a, b).p_value == pytest.approx(stats.spearmanr(a, b).pvalue, abs=0.012)


def test_a_p_value_is_never_zero():
    ranks = np.arange(30.0)
    assert spearman(ranks, ranks).p_value == pytest.approx(1e-4)
    assert spearman(ranks, -ranks).p_value == pytest.approx(1e-4)


def test_p_value_with_one_shared_outlier():
    """Both variables have their only outlier in the same pair; with twenty pairs, the chance is 1/20.

    The t approximation would give p = 0.
    """
    outlier = np.zeros(20)
    outlier[3] = 1
    assert spearman(outlier, outlier).p_value == pytest.approx(1 / 20, abs=0.007)


def test_a_perfect_correlation_has_no_interval():
    found = spearman(np.arange(9.0), np.arange(9.0))
    assert found.rho == 1
    assert np.isnan([found.low, found.high]).all()


def test_a_constant_metric_has_no_correlation():
    assert np.isnan(spearman(np.ones(5), np.arange(5.0)).rho)


def test_pearson_by_hand():
    assert pearson(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])) == pytest.approx(0.5)


def test_kendalls_tau_b_by_hand():
    """Tau-b is 4 / sqrt(5 * 5): four of six pairs agree, none disagrees, and each variable has one tie."""
    assert kendall(np.array([1.0, 1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0, 3.0])) == pytest.approx(4 / 5)


def test_a_constant_metric_has_no_pearson_correlation():
    assert np.isnan(pearson(np.ones(5), np.arange(5.0)))


def test_williams_test_equals_steigers_formula():
    """The p-value equals that of Steiger's formula; the documentation of R has t = -0.89 for this example."""
    r12, r13, r23, n = 0.4, 0.5, 0.1, 103
    determinant = np.linalg.det([[1, r12, r13], [r12, 1, r23], [r13, r23, 1]])
    t = (r12 - r13) * np.sqrt(
        (n - 1) * (1 + r23) / (2 * (n - 1) / (n - 3) * determinant + (r12 + r13) ** 2 / 4 * (1 - r23) ** 3)
    )
    assert t == pytest.approx(-0.89, abs=5e-3)
    assert williams(r12, r13, r23, n) == pytest.approx(2 * stats.t.cdf(t, n - 3))
    assert williams(0.5, 0.5, 1.0, 50) == 1


def test_williams_test_is_undefined_for_a_metric_and_its_reverse():
    assert np.isnan(williams(0.5, -0.5, -1.0, 50))


def test_williams_p_value_of_few_items_is_not_too_small():
    """For five items, `williams` returns no p-value below 2^-4.

    No permutation test can have a smaller p-value: of 2^5 possible swaps, at least two always count, to swap
    nothing and to swap everything. Here, one metric orders the items as the ratings do, and the other metric
    exchanges two of them. The formula of Williams' test alone would give p = .012.
    """
    assert williams(1.0, 0.9, 0.9, 5) == 2**-4
    assert 0 < williams(0.99, -0.99, 0.0, 5000) < 1e-300


def test_permutation_p_value_equals_enumeration_of_all_swaps():
    random = np.random.default_rng(4)
    rated = random.normal(size=9)
    a, b = rated + random.normal(size=9), random.normal(size=9)
    ranks = [stats.rankdata(values) for values in (a, b)]

    def difference(x, y):
        return stats.pearsonr(x, stats.rankdata(rated))[0] - stats.pearsonr(y, stats.rankdata(rated))[0]

    exact = stats.permutation_test(ranks, difference, permutation_type="samples", n_resamples=np.inf).pvalue
    p = permutation_p_values([a, b], rated)
    assert p[0, 1] == p[1, 0] == pytest.approx(exact)
    assert p[0, 0] == 1


def test_permutation_counts_swaps_that_make_all_ranks_equal():
    """Two metrics rank three items in opposite orders.

    Of the eight possible swaps, four give an equally large difference, and the other four give none.
    """
    ranks = np.array([1.0, 2.0, 3.0])
    assert permutation_p_values([ranks, -ranks], ranks)[0, 1] == 0.5


def test_permutation_of_many_items_in_bounded_memory():
    random = np.random.default_rng(0)
    ratings, *scores = random.normal(size=(3, 5_000))
    tracemalloc.start()
    assert permutation_p_values(scores, ratings)[0, 1] > 0.001
    assert tracemalloc.get_traced_memory()[1] < 250e6
    tracemalloc.stop()


def test_permutation_p_values_of_equal_and_different_metrics():
    random = np.random.default_rng(5)
    rated = random.normal(size=200)
    noisy = [rated + random.normal(scale=scale, size=200) for scale in (0.3, 2, 2)]
    p = permutation_p_values(noisy, rated)
    assert p[0, 1] < 0.001
    assert p[1, 2] > 0.01


def test_clusters_by_hand():
    """The third-best metric is significantly worse than the best: a cluster begins, and the fourth joins."""
    p = np.ones((4, 4))
    for i, j in [(0, 2), (0, 3), (1, 3)]:
        p[i, j] = p[j, i] = 0.001
    assert clusters([0.8, 0.9, 0.1, 0.2], p[np.ix_([1, 0, 3, 2], [1, 0, 3, 2])]) == [1, 1, 3, 3]


def naive_pairwise_accuracy(scores, given):
    pairs = list(itertools.combinations(range(len(scores)), 2))
    differences = [scores[i] - scores[j] for i, j in pairs]
    best = 0.0
    for epsilon in [0.0, *map(abs, differences)]:
        order = [0 if abs(d) <= epsilon else np.sign(d) for d in differences]
        best = max(
            best, np.mean([o == np.sign(given[i] - given[j]) for o, (i, j) in zip(order, pairs, strict=True)])
        )
    return best


def test_pairwise_accuracy_equals_a_search_over_all_epsilons():
    random = np.random.default_rng(1)
    for _ in range(20):
        scores, given = random.integers(8, size=12) / 7, random.integers(1, 5, size=12).astype(float)
        assert pairwise_accuracy(scores, given) == pytest.approx(naive_pairwise_accuracy(scores, given))


def test_pairwise_accuracy_counts_ties_of_ratings():
    """The scores 0.50 and 0.51 belong to equal ratings. If they count as tied, all three pairs are right."""
    assert pairwise_accuracy(np.array([0.5, 0.51, 0.9]), np.array([2.0, 2.0, 4.0])) == 1
    assert pairwise_accuracy(np.array([0.9, 0.51, 0.5]), np.array([2.0, 2.0, 4.0])) == pytest.approx(1 / 3)


def test_pairwise_accuracy_of_a_sample_is_close_to_the_whole():
    random = np.random.default_rng(2)
    given = random.integers(1, 6, size=2100).astype(float)
    scores = given + random.normal(size=2100)
    i, j = np.triu_indices(2100, 1)
    naive = max(
        np.mean(
            np.where(np.abs(d := scores[i] - scores[j]) <= e, 0, np.sign(d)) == np.sign(given[i] - given[j])
        )
        for e in np.linspace(0.2, 1, 9)
    )
    assert pairwise_accuracy(scores, given) == pytest.approx(naive, abs=0.003)
