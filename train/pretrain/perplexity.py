"""Perplexity on held-out texts: exp of the mean loss per predicted token."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

# Only for types: the command that draws perplexities starts faster without torch.
if TYPE_CHECKING:
    from train.pretrain.batches import PretrainingBatches
    from train.pretrain.permutation import PermutedBatch
    from train.runtime.distributed import World


def compute_perplexity(loss: float) -> float:
    """Compute the perplexity from the mean loss in nats."""
    # exp(710) overflows, which happens when the training diverges.
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
    """Measure the perplexity on the first `texts` held-out texts, always in the same random order of tokens.

    `loss_of` sums the loss of a batch over its predicted tokens, in nats.
    """
    loss, count = 0.0, 0
    parts = batches.evaluation_texts(texts, batch_tokens)
    # A sharded model needs all processes at the same time, so that each computes all batches.
    for part in parts if is_sharded else parts[world.rank :: world.size]:
        batch = batches.make_batch(np.zeros_like(part), part)
        loss += loss_of(batch)
        count += batch.predicted
    loss, predicted = world.sum_values(loss, count)
    return compute_perplexity(loss / predicted)
