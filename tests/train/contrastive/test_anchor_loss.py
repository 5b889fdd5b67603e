"""The anchor loss, which keeps the encoder near its start model."""

import pytest
import torch

from tests.train.contrastive.one_update import assert_equal, settings, update, without_dropout
from train.contrastive.task import ContrastiveTask
from train.runtime.distributed import World


@pytest.mark.slow
def test_the_anchor_holds_the_encoder_at_its_start(update_folder, tmp_path):
    """The anchor loss adds no gradient at the encoder's start weights; at other weights, it is positive."""
    model = without_dropout(update_folder, tmp_path / "model")
    alone = update(update_folder, World(), model)
    assert_equal(update(update_folder, World(), model, "anchor_weight=0"), alone, 0.0)
    anchored = update(update_folder, World(), model, "anchor_weight=5")
    assert_equal(anchored, alone, 1e-5)
    task = ContrastiveTask(settings(update_folder, model, "anchor_weight=5"), World())
    with torch.no_grad():
        for parameter in task.encoder.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0)))
    moved = sum(part()[0].item() for part in task.losses(3))
    task.config = settings(update_folder, model, "anchor_weight=1")
    assert moved > sum(part()[0].item() for part in task.losses(3)) + 1e-3
