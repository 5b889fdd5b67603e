"""Corrections of p-values."""

import numpy as np
import pytest

from simllm.stats.significance import holm, holm_of_pairs


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_impossible_tests_are_no_members_of_the_family():
    nan = float("nan")
    assert holm([0.01, nan, 0.04, 0.03]) == pytest.approx([0.03, nan, 0.06, 0.06], nan_ok=True)
    assert np.isnan(holm([nan, nan])).all()
    assert holm([]) == []


def test_holm_of_pairs_by_hand():
    p = np.array([[1, 0.01, 0.04], [0.01, 1, 0.03], [0.04, 0.03, 1]])
    assert holm_of_pairs(p) == pytest.approx(np.array([[1, 0.03, 0.06], [0.03, 1, 0.06], [0.06, 0.06, 1]]))
