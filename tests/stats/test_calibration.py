"""Scores of predicted probabilities equal those of scikit-learn; priors are shifted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from simllm.stats.calibration import brier_score, log_loss, shift_prior


def test_the_log_loss_is_that_of_scikit_learn():
    random = np.random.default_rng(0)
    gold, chances = random.integers(0, 2, 50), random.random(50)
    chances[:3] = 1 - gold[:3]  # certain and wrong
    own = np.where(gold == 1, chances, 1 - chances)
    assert log_loss(own) == pytest.approx(metrics.log_loss(gold, chances), abs=1e-12)
    table, gold = np.array([[0, 1, 0], [0.2, 0.3, 0.5], [1, 0, 0]]), np.array([2, 1, 0])
    expected = metrics.log_loss(gold, table, labels=[0, 1, 2])
    assert log_loss(table[np.arange(3), gold]) == pytest.approx(expected, abs=1e-12)


def test_the_brier_score_is_that_of_scikit_learn():
    random = np.random.default_rng(0)
    gold, chances = random.integers(0, 2, 50), random.random(50)
    assert brier_score(chances, gold) == pytest.approx(metrics.brier_score_loss(gold, chances))


def test_the_brier_score_of_several_classes_adds_their_errors():
    table = np.array([[0.5, 0.25, 0.25], [0, 1, 0]])
    assert brier_score(table, np.eye(3)[[0, 2]]) == pytest.approx((0.25 + 2 / 16 + 2) / 2)


def test_prior_shift_of_known_values():
    # Odds of 4 are divided by 9 if one pair in ten has the same meaning, not one in two.
    assert shift_prior(np.array([0.8, 0.5, 0.0, 1.0]), 0.1) == pytest.approx([4 / 13, 0.1, 0, 1])
    assert shift_prior(np.array([0.3]), 0.9) == pytest.approx([27 / 34])
    assert shift_prior(np.array([0.2]), 0.5, calibrated=0.2) == pytest.approx([0.5])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9), st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_prior_shift_is_monotone_and_can_be_undone(values, prior, other):
    values = np.sort(np.array(values))
    shifted = shift_prior(values, prior, other)
    assert ((shifted >= 0) & (shifted <= 1)).all()
    assert (np.diff(shifted) >= 0).all()
    assert shift_prior(shifted, other, prior) == pytest.approx(values, abs=1e-6)
    assert shift_prior(values, prior, prior).tolist() == pytest.approx(values.tolist(), abs=1e-12)
