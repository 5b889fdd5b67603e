import tracemalloc

import krippendorff
import numpy as np
import pytest
from scipy import stats

from simllm.evaluation import ratings
from simllm.stats.agreement import alpha, ceiling, mean_ratings, rater_agreement

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
