"""Bootstrap intervals and sign flips."""

import numpy as np
import pytest

from simllm.stats.intervals import mean_interval
from simllm.stats.resampling import bootstrap_p, interval, paired_mean, paired_permutation


def test_missing_values_have_no_p_value():
    differences = np.array([0.2, np.nan, 0.1])
    assert np.isnan(paired_permutation(differences).p)
    assert np.isnan(bootstrap_p(differences, 3))


def test_intervals_that_would_look_too_certain_are_undefined():
    values = np.linspace(0, 1, 101)
    assert np.isnan(interval(values, 5)).all()
    assert interval(values, 6) == pytest.approx((0.025, 0.975))
    assert np.isnan(interval(np.full(100, 0.5), 50)).all()
    assert np.isnan(mean_interval(np.array([0.3, 0.3, 0.3]))).all()
    assert np.isnan(mean_interval(np.array([0.3]))).all()
    assert mean_interval(np.array([1.0, 2.0, 3.0])) == pytest.approx((-0.48414, 4.48414), abs=1e-5)


def test_resamples_without_a_value_are_left_out_of_an_interval():
    values = np.concatenate([np.linspace(0, 1, 101), [np.nan] * 9])
    assert interval(values, 6) == pytest.approx((0.025, 0.975))
    assert np.isnan(interval(np.full(9, np.nan), 6)).all()


def test_the_mean_of_few_differences_has_a_p_value_but_no_interval():
    few = paired_mean(np.array([0.1, 0.2, 0.3]))
    assert (few.mean, few.p) == pytest.approx((0.2, 2 / 8))
    assert np.isnan([few.low, few.high]).all()
    more = paired_mean(np.array([0.1, 0.2, 0.3, 0.1, 0.2, 0.3]))
    assert 0.1 <= more.low < more.mean < more.high <= 0.3
