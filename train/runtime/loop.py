"""The training loop: optimizer steps, evaluation, saving; steps without finite gradients are skipped."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

from simllm.errors import InputError
from simllm.model.network import Encoder
from simllm.model.torch_engine import has_fast_bfloat16
from train.runtime import distributed
from train.runtime.batching import combined_seed, stop_prefetching
from train.runtime.checkpoint import Progress, TrainingState
from train.runtime.config import MODEL, SNAPSHOTS, TrainingConfig
from train.runtime.distributed import World
from train.runtime.gradients import GradientExchange, LossPart, make_scaler, peak_flops
from train.runtime.log import ProgressReport
from train.runtime.signals import Stopped, StopRequest


class DivergedError(Exception):
    """Exception for diverged training: too many updates in a row had no finite loss or gradient."""


def make_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.AdamW:
    """Make an AdamW optimizer with weight decay on matrices, but not on biases and layer norms."""
    decayed = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim == 1]
    return torch.optim.AdamW(
        [{"params": decayed, "weight_decay": config.weight_decay}, {"params": plain, "weight_decay": 0.0}],
        lr=config.learning_rate,
        betas=(config.adam_beta1, config.adam_beta2),
        eps=config.adam_epsilon,
        fused=True,
    )


def learning_rate(update: int, config: TrainingConfig) -> float:
    """Compute the learning rate of one update: linear warm-up to the peak, then a linear fall to 0.

    The schedule is that of section 5 of the SIMLLM paper.
    """
    peak, warmup = config.learning_rate, config.warmup_updates
    if update < warmup:
        return config.warmup_start + (peak - config.warmup_start) * update / warmup
    return peak * (config.updates - update) / max(1, config.updates - warmup)


def clip_gradient(
    model: nn.Module, adam: torch.optim.Optimizer, scaler: torch.amp.GradScaler, clip_norm: float
) -> float:
    """Scale the gradient down to a norm of at most `clip_norm`, in place; return its norm before."""
    # The gradient is that of the scaled loss, and `clip_norm` is meant for the loss itself.
    scaler.unscale_(adam)
    clipped = nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
    return float(distributed.collect(clipped))


def step_if_finite(
    adam: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    progress: Progress,
    loss: float,
    norm: float,
    max_skipped: int,
    describe_texts: Callable[[int], str],
) -> None:
    """Make one optimizer step, or skip it if the loss or the gradient is not finite; clear the gradient.

    `loss` is the sum over all processes. More than `max_skipped` skipped updates in a row are a
    DivergedError, whose message has the `describe_texts` of the last one.
    """
    if math.isfinite(loss) and math.isfinite(norm):
        scaler.step(adam)
        progress.losses.append(loss)
        progress.skipped_in_a_row = 0
    else:
        progress.skipped += 1
        progress.skipped_in_a_row += 1
        if progress.skipped_in_a_row > max_skipped:
            raise DivergedError(
                f"{progress.skipped_in_a_row} updates in a row had no finite gradient; the last is "
                f"update {progress.update}, learning rate {adam.param_groups[0]['lr']:.3g}, "
                f"{describe_texts(progress.update)}"
            )
    scaler.update()
    adam.zero_grad()


class Task(Protocol):
    """Interface of a training stage for the training loop: the model, the losses, the evaluation."""

    @property
    def model(self) -> nn.Module:
        """The module whose parameters are trained."""

    @property
    def flops_per_token(self) -> float:
        """Estimated floating-point operations of training per text token, to report the utilization."""

    def losses(self, update: int) -> Sequence[LossPart]:
        """Return a function for each term of an update's loss that falls to this process."""

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """Compute the criterion, and figures for the log, such as "test_perplexity", by their names."""

    def format_loss(self, loss: float) -> str:
        """Format the loss of one update for the progress bar."""

    def describe_texts(self, update: int) -> str:
        """Describe the training texts of one update, to help find a bad text."""


def set_up_encoders(model: nn.Module, config: TrainingConfig) -> None:
    """Turn on gradient checkpointing and compilation in the encoders of a model, if configured."""
    for encoder in model.modules():
        if isinstance(encoder, Encoder):
            encoder.gradient_checkpointing = config.gradient_checkpointing
            for layer in encoder.layers:
                if config.compile and not layer._compiled_call_impl:  # the pretraining task may have done it
                    layer.compile(dynamic=True)


def train(
    config: TrainingConfig,
    task: Task,
    world: World,
    stop: StopRequest,
    run: str,
    write_log: Callable[[dict[str, Any]], None],
    save_model: Callable[[Path, Progress, float], None],
) -> None:
    """Train for `config.updates` updates, or resume from the last saved state with the hash `run`.

    Only the first process calls `write_log`, with a line of figures, and `save_model`, with the folder to
    write and the criterion: for the best model so far, and for each snapshot. Stopped: a signal stopped the
    run, and its state is saved.
    """
    states = Path(config.out) / "states"
    set_up_encoders(task.model, config)
    exchange = GradientExchange(task.model, world)
    adam = make_optimizer(task.model, config)
    scaler = make_scaler(world.device, config.precision)
    state = TrainingState(task.model, adam, scaler, run)
    world.first_then_others(lambda: state.resume(states))
    progress = state.progress
    if world.sum_values(progress.update) != [world.size * progress.update]:
        raise InputError(f"{states}: the processes find different states there; they must share `out`")
    if progress.update and world.is_first:
        print(f"resuming after update {progress.update}", file=sys.stderr)
    if world.is_first and config.precision == "bf16" and not has_fast_bfloat16(world.device.type):
        print("note: this processor is faster in float32: precision=fp32", file=sys.stderr)
    peak = peak_flops(world.device, config.precision) * world.size
    report = ProgressReport(config, progress.update, silent=not world.is_first)
    logged = (progress.tokens, progress.seconds)

    def save(line: dict[str, Any] | None, criterion: float, is_best: bool) -> None:
        if world.is_first:
            # The state comes last: a run that is killed before it is complete repeats log line and models.
            if line:
                write_log(line)
            if is_best:
                save_model(Path(config.out) / MODEL, progress, criterion)
            if math.isfinite(criterion) and config.takes_snapshot(progress.update):
                name = f"update-{progress.update:08d}"
                save_model(Path(config.out) / SNAPSHOTS / name, progress, criterion)
            state.save(states)

    stop.after_update = True
    while progress.update < config.updates:
        started = time.monotonic()
        rate = learning_rate(progress.update, config)
        for group in adam.param_groups:
            group["lr"] = rate

        torch.manual_seed(combined_seed(config.seed, progress.update, world.rank))  # for dropout
        task.model.train()
        # The loss stays on the device until the end of the update, so that the CPU need not wait for each
        # term.
        own_loss, own_tokens = torch.zeros((), device=world.device), 0
        parts = _loss_parts(task, progress.update, stop, world) or [exchange.no_loss]
        # A stop does not wait for the end of a long update: the update is left, and repeated after a resume.
        is_left = False
        for number, compute in enumerate(parts, 1):
            is_left = _requested_anywhere(stop, task.model, world)
            # The other processes wait for the gradients of this one, even if nobody uses them.
            part, count = exchange.no_loss() if is_left else compute()
            exchange.backward(scaler.scale(part), is_last=is_left or number == len(parts))
            own_loss += part.detach()
            own_tokens += count
            if is_left:
                break
        loss, tokens, stop_requested, left = world.sum_values(
            float(own_loss), own_tokens, stop.requested, is_left
        )
        if left:
            adam.zero_grad()
            with distributed.whole(task.model, adam, world):
                world.first_then_others(partial(save, None, math.inf, False))
            raise _stopped(progress, stop)
        norm = clip_gradient(task.model, adam, scaler, config.clip_norm)
        step_if_finite(adam, scaler, progress, loss, norm, config.max_skipped, task.describe_texts)
        progress.update += 1
        progress.tokens += int(tokens)
        seconds = time.monotonic() - started
        progress.seconds += seconds
        speed = tokens / seconds
        # A measured peak is too low if other programs ran meanwhile; what is reached is a better one.
        peak = max(peak, speed * task.flops_per_token)
        share = speed * task.flops_per_token / peak
        report.advance(seconds, f"{task.format_loss(loss)}, {speed:,.0f} tokens/s, MFU {share:.0%}")

        finished = progress.update == config.updates
        evaluate = progress.update % config.evaluate_every == 0 or finished
        line, criterion, is_best = None, math.inf, False
        if evaluate or stop_requested:
            with report.pausing():
                if evaluate:
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
                    is_best = criterion < progress.best
                    progress.best = min(progress.best, criterion)
                    progress.losses = []
                # In all processes: each holds a part of a sharded model, and an error of the first stops all.
                with distributed.whole(task.model, adam, world):
                    world.first_then_others(partial(save, line, criterion, is_best))
        if stop_requested and not finished:
            raise _stopped(progress, stop)
    report.bar.close()


def _loss_parts(task: Task, update: int, stop: StopRequest, world: World) -> Sequence[LossPart]:
    """Return the parts of an update's loss; none if a signal asks a run of one process to stop."""
    # This may take long, too: batches are made, and texts embedded. Several processes must do it together.
    try:
        if stop.requested and world.size == 1:
            return []
        stop.after_update = world.size > 1
        parts = task.losses(update)
        stop.after_update = True
    except Stopped:
        stop.after_update = True
        return []
    return parts


def _requested_anywhere(stop: StopRequest, model: nn.Module, world: World) -> bool:
    """Return whether a signal asks this process to stop, or any process if the model is sharded."""
    # A sharded model computes in all processes at the same time, so they must leave an update together.
    return world.sum_values(stop.requested)[0] > 0 if distributed.is_sharded(model) else stop.requested


def _stopped(progress: Progress, stop: StopRequest) -> Stopped:
    stop_prefetching()
    return Stopped(f"stopped after update {progress.update}; rerun the same command to resume", stop.status)


def _rounded(figure: float) -> float | None:
    return round(figure, 4) if math.isfinite(figure) else None  # JSON has only finite numbers
