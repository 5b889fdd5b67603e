"""Learning rates, gradient clipping, and skipping of updates without a finite gradient."""

import contextlib
import math
import os
import signal
import subprocess
import sys
import termios

import pytest
import torch
from torch import nn

from tests.conftest import ROOT
from train.pretrain.config import PretrainConfig
from train.runtime import loop
from train.runtime.checkpoint import Progress
from train.runtime.config import load
from train.runtime.distributed import World
from train.runtime.gradients import make_scaler
from train.runtime.log import ProgressReport
from train.runtime.loop import DivergedError, clip_gradient, learning_rate, step_if_finite, train
from train.runtime.signals import Stopped, StopRequest

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


class ManyParts:
    """A task with five loss parts an update; `at(update, part)` is called while a part is computed."""

    def __init__(self, at=lambda update, part: None):
        self.model, self.at = nn.Linear(2, 1), at
        self.flops_per_token = 1e15  # far more than any machine reaches

    def losses(self, update):
        return [lambda part=part: self.compute(update, part) for part in range(5)]

    def compute(self, update, part):
        self.at(update, part)
        return self.model(torch.ones(3, 2)).sum(), 6

    def evaluate(self):
        return 1.0, {}

    def format_loss(self, loss):
        return f"loss {loss:.2f}"

    def describe_texts(self, update):
        return "no texts"


def run_loop(task, out, *more):
    """Train in this process; return the lines of the log."""
    overrides = [f"out={out}", "updates=3", "evaluate_every=1", "warmup_updates=0", *more]
    lines = []
    with StopRequest() as stop:
        config = load(PretrainConfig, ROOT / "configs" / "debug.yaml", overrides)
        train(config, task, World(), stop, "run", lines.append, lambda *_: None)
    return lines


def test_mfu_is_never_above_one(tmp_path):
    lines = run_loop(ManyParts(), tmp_path)
    assert [line["update"] for line in lines] == [1, 2, 3]
    assert all(0 < line["mfu"] <= 1 for line in lines)


@pytest.mark.parametrize("is_fast", [True, False])
def test_bfloat16_that_is_slower_is_told(is_fast, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(loop, "has_fast_bfloat16", lambda _: is_fast)
    note = "note: this processor is faster in float32: precision=fp32\n"
    run_loop(ManyParts(), tmp_path / "bf16", "precision=bf16")
    assert (note in capsys.readouterr().err) != is_fast
    run_loop(ManyParts(), tmp_path / "fp32", "precision=fp32")
    assert note not in capsys.readouterr().err


def test_a_signal_ends_an_update_between_two_parts(tmp_path):
    computed = []

    def at(update, part):
        computed.append((update, part))
        if computed == [(0, part) for part in range(5)] + [(1, 0), (1, 1)]:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Stopped, match="stopped after update 1; rerun"):
        run_loop(ManyParts(at), tmp_path)
    assert computed[-1] == (1, 1)
    resumed = []
    lines = run_loop(ManyParts(lambda *place: resumed.append(place)), tmp_path)
    assert resumed[0] == (1, 0)  # the update is repeated from its start
    assert [line["update"] for line in lines] == [2, 3]


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


@pytest.fixture
def clock(monkeypatch):
    """Replace the clock of the progress report by one that a test moves forward."""
    now = [0.0]
    monkeypatch.setattr("train.runtime.log.time.monotonic", lambda: now[0])
    return now


def test_progress_without_a_terminal_is_a_line_now_and_then_with_the_time_left(clock, capsys):
    config = load(PretrainConfig, ROOT / "configs" / "debug.yaml", ["updates=100", "evaluate_every=50"])
    report = ProgressReport(config, 0, silent=False)
    for _ in range(50):
        clock[0] += 2
        report.advance(2, "loss 1.0")
    with report.pausing():
        clock[0] += 130
    clock[0] += 2
    report.advance(2, "loss 0.5")
    assert capsys.readouterr().err.splitlines() == [
        "  8 of 100 updates, loss 1.0, 3.1 minutes left",
        "  23 of 100 updates, loss 1.0, 2.6 minutes left",
        "  38 of 100 updates, loss 1.0, 2.1 minutes left",
        "  50 of 100 updates, evaluating",
        # 49 updates of 2 seconds, and the last evaluation
        "  51 of 100 updates, loss 0.5, 3.8 minutes left",
    ]


def test_only_the_first_process_reports_progress(clock, capsys):
    config = load(PretrainConfig, ROOT / "configs" / "debug.yaml", [])
    report = ProgressReport(config, 0, silent=True)
    clock[0] += 1000
    report.advance(1000, "loss 1.0")
    assert capsys.readouterr().err == ""


def test_progress_on_a_terminal_is_a_bar_with_the_time_left():
    train = """
from pathlib import Path
from train.pretrain.config import PretrainConfig
from train.runtime.config import load
from train.runtime.log import ProgressReport
config = load(PretrainConfig, Path("configs/debug.yaml"), ["updates=4", "warmup_updates=1"])
report = ProgressReport(config, 0, False)
report.advance(60, "loss 1.0")
with report.pausing():
    pass
"""
    reader, terminal = os.openpty()
    termios.tcsetwinsize(terminal, (24, 100))
    subprocess.run([sys.executable, "-c", train], cwd=ROOT, stderr=terminal, check=True)
    os.close(terminal)
    shown = ""
    with contextlib.suppress(OSError):  # the end of the output
        while True:
            shown += os.read(reader, 65536).decode()
    assert "1/4 [00:00, loss 1.0, 3.0 minutes left]" in shown
    assert "1/4 [00:00, evaluating]" in shown
