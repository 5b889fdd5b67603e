"""Each statistic against a hand-computed case or an independent implementation."""

import itertools

import numpy as np
import pytest
from scipy import stats

from simllm.evaluation import ratings
from simllm.stats.correlation import interval_by_rater, kendall, pairwise_accuracy, pearson, spearman
from simllm.stats.rater_agreement import agreement, ceiling
from simllm.stats.significance import clusters, holm, permutation, williams


def test_spearman_by_hand():
    result = spearman(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([2.0, 1.0, 4.0, 3.0, 5.0]))
    assert result.rho == pytest.approx(1 - 6 * 4 / (5 * 24))
    assert result.low <= result.rho <= result.high


def test_the_interval_covers_the_truth_as_often_as_it_says():
    random = np.random.default_rng(0)
    covered = 0
    for _ in range(60):
        x = random.normal(size=80)
        result = spearman(x, 0.7 * x + random.normal(size=80))
        covered += result.low < 0.552 < result.high  # rho of this bivariate normal: 6/pi asin(r/2)
    assert 50 <= covered <= 60


def test_a_constant_metric_has_no_correlation():
    assert np.isnan(spearman(np.ones(5), np.arange(5.0)).rho)
    assert np.isnan(pearson(np.ones(5), np.arange(5.0)))


def test_pearson_by_hand():
    assert pearson(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])) == pytest.approx(0.5)


def test_kendalls_tau_b_by_hand():
    """Of six pairs four agree, none disagrees; one is tied on either side: 4 / sqrt(5 * 5)."""
    assert kendall(np.array([1.0, 1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0, 3.0])) == pytest.approx(4 / 5)


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


def test_pairwise_accuracy_equals_trying_every_epsilon():
    random = np.random.default_rng(1)
    for _ in range(20):
        scores, given = random.integers(8, size=12) / 7, random.integers(1, 5, size=12).astype(float)
        assert pairwise_accuracy(scores, given) == pytest.approx(naive_pairwise_accuracy(scores, given))


def test_pairwise_accuracy_rewards_ties_that_people_see():
    """0.50 and 0.51 are rated alike: with an epsilon of 0.01 all three pairs are right."""
    assert pairwise_accuracy(np.array([0.5, 0.51, 0.9]), np.array([2.0, 2.0, 4.0])) == 1
    assert pairwise_accuracy(np.array([0.9, 0.51, 0.5]), np.array([2.0, 2.0, 4.0])) == pytest.approx(1 / 3)


def test_pairwise_accuracy_of_a_sample_is_near_that_of_all():
    random = np.random.default_rng(2)
    given = random.integers(1, 6, size=2500).astype(float)
    scores = given + random.normal(size=2500)
    i, j = np.triu_indices(2500, 1)
    naive = max(
        np.mean(
            np.where(np.abs(d := scores[i] - scores[j]) <= e, 0, np.sign(d)) == np.sign(given[i] - given[j])
        )
        for e in np.linspace(0, 2, 41)
    )
    assert pairwise_accuracy(scores, given) == pytest.approx(naive, abs=0.003)


def test_other_raters_widen_the_interval():
    random = np.random.default_rng(3)
    truth = random.normal(size=100)
    raters = truth[:, None] + random.normal(scale=[0.2, 0.2, 3.0], size=(100, 3))
    raters[::7, 0] = np.nan
    low, high = interval_by_rater(truth, raters)
    by_item = spearman(truth, np.nanmean(raters, axis=1))
    assert low < by_item.low < by_item.rho < by_item.high < high


def test_williams_by_its_matrix_form():
    """Against Steiger's formula with the determinant as numpy has it; R documents -0.89."""
    r12, r13, r23, n = 0.4, 0.5, 0.1, 103
    determinant = np.linalg.det([[1, r12, r13], [r12, 1, r23], [r13, r23, 1]])
    t = (r12 - r13) * np.sqrt(
        (n - 1) * (1 + r23) / (2 * (n - 1) / (n - 3) * determinant + (r12 + r13) ** 2 / 4 * (1 - r23) ** 3)
    )
    assert t == pytest.approx(-0.89, abs=5e-3)
    assert williams(r12, r13, r23, n) == pytest.approx(2 * stats.t.cdf(t, n - 3))
    assert williams(0.5, 0.5, 1.0, 50) == 1


def test_permutation_equals_all_swaps():
    random = np.random.default_rng(4)
    rated = random.normal(size=9)
    a, b = rated + random.normal(size=9), random.normal(size=9)
    ranks = [stats.rankdata(values) for values in (a, b)]

    def difference(x, y):
        return stats.pearsonr(x, stats.rankdata(rated))[0] - stats.pearsonr(y, stats.rankdata(rated))[0]

    exact = stats.permutation_test(ranks, difference, permutation_type="samples", n_resamples=np.inf).pvalue
    p = permutation([a, b], rated)
    assert p[0, 1] == p[1, 0] == pytest.approx(exact, abs=0.02)
    assert p[0, 0] == 1


def test_permutation_is_fair_to_equals_and_sees_a_difference():
    random = np.random.default_rng(5)
    rated = random.normal(size=200)
    noisy = [rated + random.normal(scale=scale, size=200) for scale in (0.3, 2, 2)]
    p = permutation(noisy, rated)
    assert p[0, 1] < 0.001
    assert p[1, 2] > 0.01


def test_holm_by_hand():
    p = np.array([[1, 0.01, 0.04], [0.01, 1, 0.03], [0.04, 0.03, 1]])
    assert holm(p) == pytest.approx(np.array([[1, 0.03, 0.06], [0.03, 1, 0.06], [0.06, 0.06, 1]]))


def test_clusters_by_hand():
    """The third is worse than the first and opens a cluster; the fourth is not worse than the third."""
    p = np.ones((4, 4))
    for i, j in [(0, 2), (0, 3), (1, 3)]:
        p[i, j] = p[j, i] = 0.001
    assert clusters([0.8, 0.9, 0.1, 0.2], p[np.ix_([1, 0, 3, 2], [1, 0, 3, 2])]) == [1, 1, 3, 3]


# The data of Krippendorff, "Computing Krippendorff's alpha-reliability", 2011, section C; 0: no rating.
OBSERVERS = ["123321412000", "123322412503", "033323422510", "123324412510"]


def test_krippendorffs_alpha_as_published():
    raters = np.array([[float(c) for c in row] for row in OBSERVERS]).T
    raters[raters == 0] = np.nan
    found = agreement(raters)
    assert found.raters == 4
    assert found.alpha_ordinal == pytest.approx(0.815, abs=5e-4)
    assert found.alpha_interval == pytest.approx(0.849, abs=5e-4)


def test_agreement_of_haques_raters(shared):
    found = agreement(ratings.load(shared / "data" / "rated" / "haque2022.jsonl").raters)
    assert found.split_half == pytest.approx(0.837, abs=2e-3)
    assert (min(found.one_against_rest), max(found.one_against_rest)) == pytest.approx((0.67, 0.81), abs=5e-3)


def test_the_ceiling_is_what_the_truth_itself_would_reach():
    random = np.random.default_rng(3)
    truth = random.normal(size=4000)
    raters = np.round(truth[:, None] + random.normal(scale=1.5, size=(4000, 6)))
    found = agreement(raters)
    reached = stats.spearmanr(truth, raters.mean(axis=1)).statistic
    assert found.ceiling == pytest.approx(reached, abs=0.02)
    assert found.ceiling > found.split_half + 0.1
    assert np.isnan(ceiling(-0.1))


def test_split_half_and_one_against_the_rest_by_hand():
    """Two raters who see the reverse of each other; a third one who is not there for all items."""
    raters = np.array([[1.0, 4, np.nan], [2, 3, np.nan], [3, 2, np.nan], [4, 1, np.nan]])
    assert agreement(raters[:, :2]).split_half == pytest.approx(-1)
    assert agreement(raters).one_against_rest[:2] == pytest.approx([-1, -1])
    assert np.isnan(agreement(raters).one_against_rest[2])


def test_one_rater_agrees_with_nobody():
    assert agreement(np.arange(5.0)[:, None]) is None
