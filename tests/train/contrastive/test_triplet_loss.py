"""The triplet loss, compared with values computed by hand."""

import numpy as np
import pytest
import torch

from tests.train.contrastive.conftest import embeddings
from train.contrastive.losses import triplet_loss


def test_triplet_loss_by_hand():
    """The second pair has no hard negative; of the first pair, each text is compared with its negative."""
    first = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    second = torch.tensor([[0.6, 0.8], [0.0, -1.0]])
    negatives = torch.tensor([[0.0, 2.0]])  # its cosines with the first pair are 0 and 0.8; the pair's is 0.6
    expected = (np.log1p(np.exp((0 - 0.6) / 0.5)) + np.log1p(np.exp((0.8 - 0.6) / 0.5))) / 2
    actual = triplet_loss(first, second, negatives, torch.tensor([0]), 0.5)
    assert actual.item() == pytest.approx(expected, abs=1e-6)


def test_triplet_loss_without_hard_negatives_is_zero():
    first, second = (rows.requires_grad_() for rows in embeddings(2))
    loss = triplet_loss(first, second, torch.empty(0, 32), torch.empty(0, dtype=torch.long), 0.1)
    loss.backward()
    assert loss.item() == 0
    assert not first.grad.any()


def test_triplet_loss_falls_if_the_negative_moves_away():
    first, second, negatives = embeddings(3)
    pairs = torch.arange(20)
    far = triplet_loss(first, second, -first - second, pairs, 0.1)
    assert far < triplet_loss(first, second, negatives, pairs, 0.1)
    assert triplet_loss(first, second, first, pairs, 0.1) > np.log(2)
