"""Scores of predicted probabilities equal those of scikit-learn."""

import numpy as np
import pytest
from sklearn import metrics

from simllm.stats.calibration import brier_score, log_loss


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
