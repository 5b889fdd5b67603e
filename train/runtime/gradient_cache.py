"""Computation of a loss that compares all texts of a large batch, with limited memory for activations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from simllm.model.engines import batch_slices, pad
from train.runtime.batching import combined_seed
from train.runtime.distributed import World
from train.runtime.gradient_exchange import LossPart


def embedding_loss_parts(
    ids: Sequence[Sequence[int]],
    embed: Callable[[Tensor, Tensor], Tensor],
    loss_of: Callable[[Tensor], Tensor],
    *,
    width: int,
    chunk_tokens: int,
    seed: tuple[int, ...],
    cache_gradients: bool,
    world: World,
) -> list[LossPart]:
    """Split a loss over all embeddings of a batch into a sum of terms, one for each chunk of texts.

    1. Each process embeds some of the chunks.
    2. The processes share their embeddings. Every process computes the whole loss, and the gradient of the
       loss with respect to the embeddings.
    3. For each of its chunks, a process returns a function that computes a term, and the chunk's number of
       tokens. The term is the loss divided by the number of chunks. Its weight gradient is the part that
       flows through the chunk.

    Over all chunks and processes, values and weight gradients add up to those of the whole loss.

    Args:
        ids: The token ids of each of N texts.
        embed: Function that computes (B, D) embeddings from (B, L) token ids and their (B, L) mask.
        loss_of: Function that computes the loss, a scalar, from (N, D) embeddings.
        width: D.
        chunk_tokens: The largest number of tokens in a chunk, padding included.
        seed: Numbers that seed the dropout, such as the run's seed and the number of the batch.
        cache_gradients: Whether to embed each chunk twice, so that only one at a time has activations: first
            without them, and again for its term (Gao et al., "Scaling deep contrastive learning batch size
            under memory limited setup", 2021).
        world: The processes that share the texts.
    """
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))  # to save padding
    chunks = [order[rows] for rows in batch_slices([ids[i] for i in order], chunk_tokens)]
    own_chunks = list(enumerate(chunks))[world.rank :: world.size]

    def embed_chunk(number: int, texts: list[int]) -> Tensor:
        torch.manual_seed(combined_seed(*seed, number))  # the same dropout both times
        tokens, mask = (tensor.to(world.device) for tensor in pad([ids[i] for i in texts]))
        return embed(tokens, mask)

    with torch.set_grad_enabled(not cache_gradients):
        embedded = [embed_chunk(*chunk) for chunk in own_chunks]
    embeddings = torch.zeros(len(ids), width, device=world.device)
    for (_, texts), rows in zip(own_chunks, embedded, strict=True):
        embeddings[texts] = rows.detach()
    # Each row is zero in all processes but one.
    world.sum_tensor(embeddings)
    loss = loss_of(embeddings.requires_grad_())
    (gradient,) = torch.autograd.grad(loss, embeddings)
    value = loss.detach() / len(chunks)

    def loss_part(chunk: tuple[int, list[int]], rows: Tensor) -> tuple[Tensor, int]:
        again = embed_chunk(*chunk) if cache_gradients else rows
        part = (again * gradient[chunk[1]]).sum()
        # The sum has the value of the loss, but the gradient of `part`.
        return part - part.detach() + value, sum(len(ids[i]) for i in chunk[1])

    return [partial(loss_part, *both) for both in zip(own_chunks, embedded, strict=True)]
