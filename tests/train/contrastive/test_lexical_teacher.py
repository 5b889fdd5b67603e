import numpy as np
import pytest
import torch

from train.contrastive.lexical_teacher import LexicalTeacher, neighbour_distillation_loss

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


def test_equal_neighbours_give_no_loss():
    rows = torch.randn(6, 8, generator=torch.Generator().manual_seed(0))
    unit = torch.nn.functional.normalize(rows, dim=1)
    assert neighbour_distillation_loss(rows, unit @ unit.T, 0.05).item() == pytest.approx(0, abs=1e-6)
    assert neighbour_distillation_loss(rows, torch.eye(6), 0.05).item() > 0.1


def test_loss_by_hand():
    """Two of three embeddings are equal, and the third is orthogonal, so the cosines are 1 and 0.

    For the teacher, the cosines of all three pairs of texts are 0.
    """
    rows = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    near = 1 / (1 + np.exp(-2.0))  # a softmax over two neighbours at temperature 1/2
    divergence = 0.5 * np.log(0.5 / near) + 0.5 * np.log(0.5 / (1 - near))
    assert neighbour_distillation_loss(rows, torch.eye(3), 0.5).item() == pytest.approx(
        2 / 3 * divergence, abs=1e-5
    )
