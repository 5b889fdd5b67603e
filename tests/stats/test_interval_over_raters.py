import numpy as np
import pytest

from simllm.stats.agreement import interval_by_rater, mean_ratings
from simllm.stats.correlation import rank_correlations, spearman


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
