import tracemalloc

import numpy as np
import pytest
from scipy import stats

from simllm.stats.correlation import clusters, permutation_p_values, williams


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
