import numpy as np
import pytest

from train.contrastive.lexical_neighbours import LexicalTeacher

TEXTS = [[0, 5, 6, 2], [0, 5, 7, 7, 2], [0, 8, 2]]


def test_cosines_by_hand():
    """The cosines weight tokens by idf: token 5 is in two of three texts, the tokens 6, 7 and 8 in one.

    The idf of token 5 is log(4/3) + .001, and that of the others is log(4/2) + .001.
    """
    common, rare = np.log(4 / 3) + 1e-3, np.log(2) + 1e-3
    expected = np.eye(3)
    expected[0, 1] = expected[1, 0] = common / (common + rare)
    assert LexicalTeacher(TEXTS, 10).cosines(TEXTS) == pytest.approx(expected, abs=1e-6)
    assert LexicalTeacher(TEXTS, 10).cosines([[0, 2], [0, 5, 2]])[0, 1] == 0  # a text without words
