"""Perplexity of a language model on held-out texts: exp of the mean loss per predicted token."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # the command that draws perplexities starts faster without torch
    from train.pretrain.batches import PretrainingBatches
    from train.pretrain.permutation import PermutedBatch
    from train.runtime.distributed import World


def compute_perplexity(loss: float) -> float:
    """Compute the perplexity from the mean loss per predicted token, in nats.

    The result is at most exp(700). Without this limit, it would overflow if the training diverges.
    """
    return math.exp(min(loss, 700.0))


def measure_perplexity(
    batches: PretrainingBatches,
    loss_of: Callable[[PermutedBatch], float],
    world: World,
    *,
    texts: int,
    batch_tokens: int,
    is_sharded: bool,
) -> float:
    """Measure the perplexity of a model on the first held-out texts.

    Every call uses the same texts, and the same random order of the tokens in each text.

    Args:
        batches: Makes batches of the held-out texts.
        loss_of: Function that computes the loss of a batch: the sum over its predicted tokens, in nats.
        world: The processes that share the texts.
        texts: How many texts to take from the start of the held-out texts, as in
            `PretrainingBatches.evaluation_texts`.
        batch_tokens: Approximate number of tokens in a batch.
        is_sharded: Whether each process stores only a part of the model's weights. If true, a batch needs all
            processes at the same time, so every process computes all batches. If false, the batches are
            divided among the processes.

    Returns:
        The perplexity over the texts of all processes.
    """
    loss, count = 0.0, 0
    parts = batches.evaluation_texts(texts, batch_tokens)
    for part in parts if is_sharded else parts[world.rank :: world.size]:
        batch = batches.make_batch(np.zeros_like(part), part)
        loss += loss_of(batch)
        count += batch.predicted
    loss, predicted = world.sum_values(loss, count)
    return compute_perplexity(loss / predicted)
