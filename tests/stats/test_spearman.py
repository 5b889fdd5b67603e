import numpy as np
import pytest
from scipy import stats

from simllm.stats.correlation import spearman


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
