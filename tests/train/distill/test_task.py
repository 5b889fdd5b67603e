"""The losses of distillation, compared with values computed by hand."""

import numpy as np
import pytest
import torch

from train.distill.task import (
    correlation_loss,
    cosine_loss,
    neighbour_distillation_loss,
    pair_loss,
    pair_shares,
    squared_loss,
)


def test_losses_by_hand():
    found = torch.tensor([[2.0, 0.0], [0.0, 3.0]])
    targets = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    assert cosine_loss(found, targets).item() == pytest.approx(0.5)  # cosines 1 and 0
    assert squared_loss(found, targets).item() == pytest.approx(1.0)  # squared distances 0 and 2


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


def test_similar_pairs_count_twice_as_much_as_all_others():
    """The student's cosines are 1, 0 and 0; the teacher's .9, .2 and .1: only the first pair is similar."""
    rows = torch.tensor([[1.0, 0.0], [3.0, 0.0], [0.0, 1.0]])
    cosines = torch.tensor([[1.0, 0.9, 0.2], [0.9, 1.0, 0.1], [0.2, 0.1, 1.0]])
    expected = 2 / 3 * 0.1**2 + 1 / 3 * (0.2**2 + 0.1**2) / 2
    assert pair_loss(rows, cosines).item() == pytest.approx(expected, abs=1e-6)
    none_similar = torch.eye(3)
    assert pair_loss(rows, none_similar).item() == pytest.approx(1 / 3 * 1 / 3, abs=1e-6)


def test_a_text_alone_has_a_loss_of_pairs_with_a_gradient():
    row = torch.ones(1, 4, requires_grad=True)
    loss = pair_loss(row, torch.ones(1, 1))
    loss.backward()
    assert loss.item() == 0
    assert not row.grad.any()


def test_correlation_of_cosines_by_hand():
    """numpy's weighted covariance is the reference."""
    random = torch.Generator().manual_seed(0)
    rows, others = torch.randn(7, 4, generator=random), torch.randn(7, 3, generator=random)
    ours, theirs = (torch.nn.functional.normalize(x, dim=1) for x in (rows, others))
    cosines = theirs @ theirs.T
    shares = pair_shares(cosines)
    both = np.stack([(ours @ ours.T).numpy().ravel(), cosines.numpy().ravel()])
    moments = np.cov(both, aweights=shares.numpy().ravel(), ddof=0)
    expected = 1 - moments[0, 1] / (moments[0, 0] * moments[1, 1]) ** 0.5
    assert correlation_loss(rows, cosines).item() == pytest.approx(expected, abs=1e-5)
    assert (shares * (cosines > 0.35)).sum().item() == pytest.approx(2 / 3)


@pytest.mark.parametrize(("scale", "shift"), [(1, 0), (0.3, 0.5)])
def test_a_student_keeps_its_own_scale_of_cosines(scale, shift):
    rows = torch.randn(6, 8, generator=torch.Generator().manual_seed(0))
    unit = torch.nn.functional.normalize(rows, dim=1)
    assert correlation_loss(rows, scale * unit @ unit.T + shift).item() == pytest.approx(0, abs=1e-5)
    assert correlation_loss(rows, -unit @ unit.T).item() == pytest.approx(2, abs=1e-5)


@pytest.mark.parametrize("count", [1, 2])
def test_without_two_pairs_nothing_correlates(count):
    rows = torch.ones(count, 4, requires_grad=True)
    loss = correlation_loss(rows, torch.ones(count, count))
    loss.backward()
    assert loss.item() == 1
    assert rows.grad.isfinite().all()
