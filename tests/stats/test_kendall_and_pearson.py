import numpy as np
import pytest

from simllm.stats.correlation import kendall, pearson


def test_pearson_by_hand():
    assert pearson(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])) == pytest.approx(0.5)


def test_kendalls_tau_b_by_hand():
    """Tau-b is 4 / sqrt(5 * 5): four of six pairs agree, none disagrees, and each variable has one tie."""
    assert kendall(np.array([1.0, 1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0, 3.0])) == pytest.approx(4 / 5)


def test_a_constant_metric_has_no_pearson_correlation():
    assert np.isnan(pearson(np.ones(5), np.arange(5.0)))
