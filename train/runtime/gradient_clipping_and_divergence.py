"""Gradient clipping, and the optimizer step, which is skipped if the loss or the gradient is not finite.

Training has diverged if too many steps in a row were skipped.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import nn

from train.runtime import fsdp
from train.runtime.training_checkpoint import Progress


class DivergedError(Exception):
    """Exception for diverged training: too many optimizer steps in a row had no finite loss or gradient."""


def clip_gradient(
    model: nn.Module, adam: torch.optim.Optimizer, scaler: torch.amp.GradScaler, clip_norm: float
) -> float:
    """Scale the gradient of a model down, in place, so that its norm is at most `clip_norm`.

    Args:
        model: The model.
        adam: The optimizer of the model.
        scaler: The scaler, which multiplied the loss by a scale. The gradient is first divided by this scale.
        clip_norm: The largest norm of the gradient.

    Returns:
        The norm of the gradient before clipping.
    """
    scaler.unscale_(adam)
    clipped = nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
    return float(fsdp.collect(clipped))


def step_if_finite(
    adam: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    progress: Progress,
    loss: float,
    norm: float,
    max_skipped: int,
    describe_texts: Callable[[int], str],
) -> None:
    """Make one optimizer step, or skip the step if the loss or the gradient is not finite.

    The gradient is cleared in both cases, unless an error is raised.

    Args:
        adam: The optimizer.
        scaler: The scaler, which multiplied the loss by a scale. The scale is adjusted for the next update
            (optimizer step).
        progress: The record of the run's progress. The loss is added to the record. If the step is skipped,
            the number of skipped updates in the record rises by one instead.
        loss: The loss of the update, summed over all processes.
        norm: The norm of the gradient, from `clip_gradient`.
        max_skipped: Largest number of updates in a row that may be skipped.
        describe_texts: Function that takes the number of an update, and returns a description of its training
            texts for the error message.

    Raises:
        DivergedError: More than `max_skipped` updates in a row had no finite loss or gradient.
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
