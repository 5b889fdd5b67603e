"""Learning rates, gradient clipping, and skipping of updates without a finite gradient."""

import math

import pytest
import torch
from torch import nn

from tests.conftest import ROOT
from train.pretrain.config import PretrainConfig
from train.runtime.checkpoint import Progress
from train.runtime.config import load
from train.runtime.loop import DivergedError, clip_gradient, learning_rate, step_if_finite
from train.runtime.precision import make_scaler

SCALER = make_scaler(torch.device("cpu"), "fp32")


@pytest.fixture
def model():
    model = nn.Linear(2, 1, bias=False)
    nn.init.zeros_(model.weight)
    return model


def set_gradient(model, *values):
    model.weight.grad = torch.tensor([values])


def step(model, progress, loss, norm, max_skipped=1):
    adam = torch.optim.SGD(model.parameters(), lr=1.0)
    step_if_finite(adam, SCALER, progress, loss, norm, max_skipped, lambda update: f"texts of {update}")


def test_learning_rate_schedule_of_the_paper():
    config = load(PretrainConfig, ROOT / "configs" / "base.yaml", [])
    assert learning_rate(0, config) == 1e-7
    assert learning_rate(5_000, config) == pytest.approx(5.005e-5)
    assert learning_rate(10_000, config) == 1e-4
    assert learning_rate(30_000, config) == pytest.approx(0.5e-4)
    assert learning_rate(50_000, config) == 0.0


def test_only_a_long_gradient_is_shortened(model):
    adam = torch.optim.SGD(model.parameters(), lr=1.0)
    set_gradient(model, 3.0, 4.0)
    assert clip_gradient(model, adam, SCALER, 10.0) == pytest.approx(5)
    assert model.weight.grad.tolist() == [[3.0, 4.0]]
    assert clip_gradient(model, adam, SCALER, 1.0) == pytest.approx(5)
    assert model.weight.grad.tolist()[0] == pytest.approx([0.6, 0.8], rel=1e-4)


def test_a_finite_update_changes_the_weights_and_clears_the_gradient(model):
    progress = Progress()
    set_gradient(model, 3.0, 4.0)
    step(model, progress, loss=2.5, norm=5.0)
    assert model.weight.tolist() == [[-3.0, -4.0]]
    assert model.weight.grad is None
    assert (progress.losses, progress.skipped) == ([2.5], 0)


@pytest.mark.parametrize(("loss", "norm"), [(math.nan, 5.0), (2.5, math.inf), (2.5, math.nan)])
def test_an_update_without_finite_loss_or_gradient_is_skipped(model, loss, norm):
    progress = Progress()
    set_gradient(model, 3.0, 4.0)
    step(model, progress, loss, norm)
    assert model.weight.tolist() == [[0.0, 0.0]]
    assert model.weight.grad is None
    assert (progress.losses, progress.skipped, progress.skipped_in_a_row) == ([], 1, 1)


def test_too_many_skipped_updates_in_a_row_end_the_training(model):
    progress = Progress()
    for loss in (math.nan, 2.5, math.nan):  # a finite update between them: the count starts again
        set_gradient(model, 3.0, 4.0)
        step(model, progress, loss, norm=5.0)
    assert (progress.skipped, progress.skipped_in_a_row) == (2, 1)
    with pytest.raises(DivergedError, match=r"2 updates in a row had no finite gradient.*texts of 0"):
        step(model, progress, math.nan, norm=5.0)
