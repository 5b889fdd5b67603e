"""The trainer: one visible loop, for every stage of training."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from tqdm import tqdm

from simllm.errors import InputError
from train.pretrain.batches import seed_of
from train.runtime.config import Optimization
from train.runtime.distributed import World
from train.runtime.flops import peak_flops
from train.runtime.optimizer import learning_rate, optimizer
from train.runtime.signals import Interrupted, Stop
from train.runtime.state import Progress, State


class Task(Protocol):
    """What a stage trains: a model, the losses of each update, and how good it has become."""

    @property
    def model(self) -> nn.Module:
        """What is trained."""

    @property
    def flops_per_token(self) -> float:
        """Floating-point operations of training, for each token of text."""

    def losses(self, update: int) -> Iterator[tuple[Tensor, int]]:
        """Yield this process's parts of an update's loss, each with its tokens of text.

        The parts of all processes add up.
        """

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """The criterion, lower is better, and what to write into the log."""

    def in_words(self, loss: float) -> str:
        """An update's loss, as the progress bar shows it."""

    def describe(self, update: int) -> str:
        """Where an update's texts come from, for whoever must find a bad one."""


class Diverged(Exception):  # noqa: N818 (the loss has, nobody has made an error)
    """Too many updates in a row had no finite gradient."""


def train(
    config: Optimization,
    task: Task,
    world: World,
    stop: Stop,
    run: str,
    record: Callable[[dict[str, Any]], None],
    keep_best: Callable[[Progress], None],
) -> None:
    """Train for `config.updates` updates, from where the last saved state stands.

    `record` takes each line of the log, `keep_best` is called whenever the criterion has
    fallen below all before, both in the first process only; `run` identifies the
    configuration to the saved states. Raises Interrupted after a signal, Diverged after
    more than `config.max_skipped` updates in a row without a finite gradient.
    """
    states = Path(config.out) / "states"
    adam = optimizer(task.model, config)
    scaler = torch.amp.GradScaler(world.device.type, enabled=config.precision == "fp16")
    state = State(task.model, adam, scaler, run)
    world.first_does(lambda: state.resume(states))
    progress = state.progress
    if world.total(progress.update) != [world.size * progress.update]:
        raise InputError(f"{states}: the processes find different states there; they must share `out`")
    if progress.update and world.first:
        print(f"resuming after update {progress.update}", file=sys.stderr)
    peak = peak_flops(world.device, config.precision) * world.size
    silent = None if world.first else True  # None: where there is no terminal
    bar = tqdm(initial=progress.update, total=config.updates, unit=" updates", disable=silent, leave=False)
    logged = (progress.tokens, progress.seconds)

    def write(line: dict[str, Any] | None, better: bool) -> None:
        if world.first:
            if line:
                record(line)
            if better:
                keep_best(progress)
            state.save(states)

    stop.patient = True  # from here on a signal is heard between two updates
    while progress.update < config.updates:
        started = time.monotonic()
        rate = learning_rate(progress.update, config)
        for group in adam.param_groups:
            group["lr"] = rate

        torch.manual_seed(seed_of(config.seed, progress.update, world.rank))  # dropout follows the update
        task.model.train()
        own_loss, own_tokens = torch.zeros((), device=world.device), 0
        for part, count in task.losses(progress.update):
            scaler.scale(part).backward()
            own_loss += part.detach()
            own_tokens += count
        world.add_gradients(task.model)
        scaler.unscale_(adam)
        norm = float(nn.utils.clip_grad_norm_(task.model.parameters(), config.clip_norm))
        loss, tokens, asked = world.total(float(own_loss), own_tokens, stop.asked)

        if math.isfinite(loss) and math.isfinite(norm):
            scaler.step(adam)
            progress.losses.append(loss)
            progress.skipped_in_a_row = 0
        else:
            progress.skipped += 1
            progress.skipped_in_a_row += 1
            if progress.skipped_in_a_row > config.max_skipped:
                raise Diverged(
                    f"{progress.skipped_in_a_row} updates in a row had no finite gradient; the last is "
                    f"update {progress.update}, learning rate {rate:.3g}, {task.describe(progress.update)}"
                )
        scaler.update()
        adam.zero_grad()
        progress.update += 1
        progress.tokens += int(tokens)
        seconds = time.monotonic() - started
        progress.seconds += seconds
        speed = tokens / seconds
        share = speed * task.flops_per_token / peak
        bar.set_postfix_str(f"{task.in_words(loss)}, {speed:,.0f} tokens/s, MFU {share:.0%}", refresh=False)
        bar.update()

        finished = progress.update == config.updates
        due = progress.update % config.evaluate_every == 0 or finished
        line, better = None, False
        if due:
            task.model.eval()
            with torch.no_grad():
                criterion, figures = task.evaluate()
            speed = (progress.tokens - logged[0]) / (progress.seconds - logged[1])
            logged = (progress.tokens, progress.seconds)
            line = {
                "update": progress.update,
                "train_loss": progress.mean_loss(),
                **{name: _rounded(figure) for name, figure in figures.items()},
                "learning_rate": rate,
                "gradient_norm": _rounded(norm),
                "skipped": progress.skipped,
                "tokens": progress.tokens,
                "seconds": round(progress.seconds, 1),
                "tokens_per_second": round(speed),
                "mfu": round(speed * task.flops_per_token / peak, 4),
            }
            better = criterion < progress.best
            progress.best = min(progress.best, criterion)
            progress.losses = []
        if due or asked:
            world.first_does(partial(write, line, better))
        if asked and not finished:
            raise Interrupted(
                f"stopped after update {progress.update}; rerun the same command to resume", stop.status
            )
    bar.close()


def _rounded(figure: float) -> float | None:
    return round(figure, 4) if math.isfinite(figure) else None  # JSON knows no other numbers
