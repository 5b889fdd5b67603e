"""Agreement between raters, and intervals over raters."""

import tracemalloc

import krippendorff
import numpy as np
import pytest
from scipy import stats

from simllm.evaluation import ratings
from simllm.stats.agreement import alpha, ceiling, interval_by_rater, mean_ratings, rater_agreement
from simllm.stats.correlation import rank_correlations, spearman

# The data of Krippendorff, "Computing Krippendorff's alpha-reliability", 2011, section C; 0: no rating.
OBSERVERS = ["123321412000", "123322412503", "033323422510", "123324412510"]


def test_equal_means_tie_whatever_the_order_of_summation():
    ratings = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.2, 0.2, 0.2]])
    assert len(set(mean_ratings(ratings).tolist())) == 1
    assert mean_ratings(np.array([[0.1, 0.7], [0.3, 0.5]])).tolist() == [0.4, 0.4]
    assert mean_ratings(np.array([[1e99, 3e99]])) == pytest.approx([2e99])
    nan = np.nan
    assert mean_ratings(np.array([[1.0, 2], [nan, 4], [nan, nan]])) == pytest.approx(
        [1.5, 4, nan], nan_ok=True
    )
    assert mean_ratings(np.array([[1.0, 2, 6]]), np.array([2, 1, 0])) == pytest.approx([4 / 3])


def test_krippendorffs_alpha_as_published():
    raters = np.array([[float(c) for c in row] for row in OBSERVERS]).T
    raters[raters == 0] = np.nan
    found = rater_agreement(raters)
    assert found.raters == 4
    assert found.alpha_ordinal == pytest.approx(0.815, abs=5e-4)
    assert found.alpha_interval == pytest.approx(0.849, abs=5e-4)


@pytest.mark.parametrize(("ordinal", "level"), [(True, "ordinal"), (False, "interval")])
def test_krippendorffs_alpha_equals_the_library(ordinal, level):
    random = np.random.default_rng(0)
    for decimals in (0, 1, 2):
        truth = random.random((60, 1))
        raters = np.round(4 * (truth + 0.4 * random.random((60, 4))), decimals)
        raters[random.random(raters.shape) < 0.3] = np.nan
        raters = raters[(~np.isnan(raters)).sum(axis=1) >= 2]
        expected = krippendorff.alpha(raters.T, level_of_measurement=level)
        assert alpha(raters, ordinal) == pytest.approx(expected, abs=1e-12)


def test_rater_agreement_of_slider_ratings_in_bounded_memory():
    """The ratings have many different values; a matrix of all values by all values would take gigabytes."""
    random = np.random.default_rng(0)
    raters = np.round(100 * random.random((3000, 1)) + 20 * random.random((3000, 5)), 2)
    tracemalloc.start()
    assert 0.9 < rater_agreement(raters).alpha_ordinal < 1
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()


def test_agreement_of_haques_raters(real_files):
    found = rater_agreement(ratings.load(*real_files("rated/haque2022.jsonl")).raters)
    assert found.split_half == pytest.approx(0.837, abs=2e-3)
    assert (min(found.one_against_rest), max(found.one_against_rest)) == pytest.approx((0.67, 0.81), abs=5e-3)


def test_ceiling_equals_the_correlation_of_the_true_scores():
    random = np.random.default_rng(3)
    truth = random.normal(size=4000)
    raters = np.round(truth[:, None] + random.normal(scale=1.5, size=(4000, 6)))
    found = rater_agreement(raters)
    reached = stats.spearmanr(truth, raters.mean(axis=1)).statistic
    assert found.ceiling == pytest.approx(reached, abs=0.02)
    assert found.ceiling > found.split_half + 0.1
    assert np.isnan(ceiling(-0.1))


def test_split_half_and_one_against_the_rest_by_hand():
    """Two raters give opposite ratings, so both correlations are -1; a third rater rates nothing: NaN."""
    raters = np.array([[1.0, 4, np.nan], [2, 3, np.nan], [3, 2, np.nan], [4, 1, np.nan]])
    assert rater_agreement(raters[:, :2]).split_half == pytest.approx(-1)
    assert rater_agreement(raters).one_against_rest[:2] == pytest.approx([-1, -1])
    assert np.isnan(rater_agreement(raters).one_against_rest[2])


def test_agreement_of_a_single_rater_is_undefined():
    assert rater_agreement(np.arange(5.0)[:, None]) is None


def simulate_ratings(random, n, raters, taste=0.0):
    """Simulate scores and ratings of n pairs; each rater adds his own taste and noise to the truth."""
    truth, other = random.normal(size=(2, n))
    scores = truth + 0.6 * random.normal(size=n) + taste * other
    likes = taste * random.normal(size=raters)
    noise = random.normal(size=(n, raters)) * np.exp(taste * random.normal(size=raters))
    return scores, truth[:, None] + likes * other[:, None] + noise


def test_disagreeing_raters_widen_the_interval_around_the_same_centre():
    scores, ratings = simulate_ratings(np.random.default_rng(6), 150, 4, taste=0.7)
    ratings[::7, 0] = np.nan
    by_pair = spearman(scores, mean_ratings(ratings))
    low, high = interval_by_rater(scores, ratings)
    assert low < by_pair.low < by_pair.rho < by_pair.high < high
    assert np.arctanh([low, high]).mean() == pytest.approx(np.arctanh(by_pair.rho))


def test_agreeing_raters_widen_the_interval_little():
    random = np.random.default_rng(7)
    truth = random.normal(size=200)
    scores, ratings = truth + random.normal(size=200), truth[:, None] + 0.1 * random.normal(size=(200, 5))
    by_pair = spearman(scores, ratings.mean(axis=1))
    low, high = interval_by_rater(scores, ratings)
    assert high - low == pytest.approx(by_pair.high - by_pair.low, rel=0.15)


def test_the_interval_over_raters_is_undefined_without_enough_ratings():
    ratings = np.full((10, 2), np.nan)
    ratings[:, 0], ratings[:2, 1] = np.arange(10), 3
    assert np.isnan(interval_by_rater(np.arange(10.0) ** 2 % 7, ratings)).all()


def test_a_perfect_correlation_has_no_interval_over_raters():
    assert np.isnan(interval_by_rater(np.arange(9.0), np.tile(np.arange(9.0)[:, None], 3))).all()


def test_many_raters_are_left_out_in_groups():
    random = np.random.default_rng(8)
    scores, ratings = simulate_ratings(random, 300, 200)
    ratings[random.random(ratings.shape) < 0.95] = np.nan
    low, high = interval_by_rater(scores, ratings)
    assert low < spearman(scores, mean_ratings(ratings)).rho < high
    assert high - low < 0.3


@pytest.mark.slow
@pytest.mark.parametrize("raters", [3, 6])
@pytest.mark.parametrize("n", [50, 200])
@pytest.mark.parametrize("taste", [0.0, 0.3])
def test_interval_over_raters_has_its_nominal_coverage(n, raters, taste):
    """At least 93% of 300 simulated 95% intervals contain the true rho; about as many are above as below it.

    The true rho is the mean over many simulations of as many raters, with 4,000 pairs each.
    """
    random = np.random.default_rng(99)
    panels = [simulate_ratings(random, 4000, raters, taste) for _ in range(200)]
    rho = [rank_correlations(s[None], r.mean(axis=1)[None])[0] for s, r in panels]
    truth = np.tanh(np.arctanh(rho).mean())
    low, high = np.transpose(
        [interval_by_rater(*simulate_ratings(random, n, raters, taste)) for _ in range(300)]
    )
    above, below = (truth > high).mean(), (truth < low).mean()
    print(f"{n} pairs, {raters} raters, taste {taste}: {1 - above - below:.3f}, {above:.3f}, {below:.3f}")
    assert 1 - above - below >= 0.93
    assert abs(above - below) < 0.05
