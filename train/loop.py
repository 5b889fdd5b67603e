"""The trainer: one visible loop, for every stage of training."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from simllm.errors import InputError
from train import state
from train.batches import seed_of
from train.config import Optimization
from train.optim import learning_rate, optimizer


class Task(Protocol):
    """What a stage trains: a model, the losses of each update, and how good it has become."""

    @property
    def model(self) -> nn.Module:
        """What is trained."""

    def losses(self, update: int) -> Iterator[tuple[Tensor, int]]:
        """Yield the parts of an update's loss, which add up, each with its tokens of text."""

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """The criterion, lower is better, and what to write into the log."""


class Interrupted(Exception):  # noqa: N818 (it is no error)
    """The run was asked to stop by a signal and has saved its state."""


def train(
    config: Optimization,
    task: Task,
    run: str,
    record: Callable[[dict[str, Any]], None],
    keep_best: Callable[[state.Progress], None],
) -> state.Progress:
    """Train for `config.updates` updates, from where the last saved state stands.

    `record` takes each line of the log, `keep_best` is called whenever the criterion has
    fallen below all before; `run` identifies the configuration to the saved states.
    Raises Interrupted after SIGINT or SIGTERM, InputError when a gradient is not finite.
    """
    states = Path(config.out) / "states"
    adam = optimizer(task.model, config)
    progress = state.resume(states, run, task.model, adam)
    with _Stop() as stop:
        while progress.update < config.updates:
            started = time.monotonic()
            rate = learning_rate(progress.update, config)
            for group in adam.param_groups:
                group["lr"] = rate

            torch.manual_seed(seed_of(config.seed, progress.update))  # dropout follows the update
            task.model.train()
            summed = 0.0
            for loss, tokens in task.losses(progress.update):
                loss.backward()
                summed += loss.item()
                progress.tokens += tokens
            norm = float(nn.utils.clip_grad_norm_(task.model.parameters(), config.clip_norm))
            if not math.isfinite(norm):
                raise InputError(f"update {progress.update}: gradient norm {norm}; learning rate {rate:.2g}")
            adam.step()
            adam.zero_grad()
            progress.update += 1
            progress.losses.append(summed)
            progress.seconds += time.monotonic() - started

            finished = progress.update == config.updates
            if progress.update % config.evaluate_every == 0 or finished:
                task.model.eval()
                with torch.no_grad():
                    criterion, figures = task.evaluate()
                record(
                    {
                        "update": progress.update,
                        "train_loss": round(sum(progress.losses) / len(progress.losses), 4),
                        **{name: round(figure, 4) for name, figure in figures.items()},
                        "learning_rate": rate,
                        "gradient_norm": round(norm, 4),
                        "tokens": progress.tokens,
                        "seconds": round(progress.seconds, 1),
                    }
                )
                progress.losses = []
                if criterion < progress.best:
                    progress.best = criterion
                    keep_best(progress)
                state.save(states, run, progress, task.model, adam)
            if stop.asked and not finished:
                state.save(states, run, progress, task.model, adam)
                raise Interrupted(f"stopped after update {progress.update}; the same command goes on")
    return progress


class _Stop:
    """Within it, the first SIGINT or SIGTERM is a wish to stop after the update."""

    signals = (signal.SIGINT, signal.SIGTERM)

    def __enter__(self) -> _Stop:
        self.asked = False
        self.before = {number: signal.signal(number, self._ask) for number in self.signals}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        signal.signal(number, signal.SIG_DFL)  # the second one is not asked for twice
