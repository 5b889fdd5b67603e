"""Computation of a loss that compares all texts of a large batch, with limited memory for activations.

The texts are divided into chunks, and each process embeds some of the chunks. If gradients are cached, a
process keeps the activations of only one chunk at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from simllm.model.batches import batch_slices, pad
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

    The loss compares all texts of the batch with each other, but each process embeds only some of the texts:

    1. The texts are divided into chunks. Each process embeds some of the chunks.
    2. The processes share their embeddings. Every process computes the whole loss, and the gradient of the
       loss with respect to the embeddings.
    3. For each of its chunks, a process returns a function that computes a term. The value of the term is the
       whole loss divided by the number of chunks. Its weight gradient is the part of the loss gradient that
       flows through the embeddings of the chunk.

    The caller backpropagates each term. Over all chunks and processes, the weight gradients of the terms add
    up to the gradient of the whole loss.

    Args:
        ids: The token ids of each of N texts.
        embed: Function that computes (B, D) embeddings from (B, L) token ids and their (B, L) mask.
        loss_of: Function that computes the loss, a scalar, from (N, D) embeddings.
        width: Width of the embeddings, D.
        chunk_tokens: The largest number of tokens in a chunk, padding included.
        seed: Numbers that seed the dropout, such as the run's seed and the number of the batch.
        cache_gradients: Whether to save memory by embedding each chunk twice: first without storing
            activations, and again when its term is computed (Gao et al., "Scaling deep contrastive learning
            batch size under memory limited setup", 2021). Only one chunk then has activations at a time.
            False: the activations of all chunks of this process stay in memory.
        world: The processes that share the texts.

    Returns:
        For each chunk of this process, a function without arguments. The function returns the chunk's term of
        the loss (a scalar), and the chunk's number of tokens. The terms of all processes add up to the loss.
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
    world.sum_tensor(embeddings)
    loss = loss_of(embeddings.requires_grad_())
    (gradient,) = torch.autograd.grad(loss, embeddings)
    value = loss.detach() / len(chunks)

    def loss_part(chunk: tuple[int, list[int]], rows: Tensor) -> tuple[Tensor, int]:
        again = embed_chunk(*chunk) if cache_gradients else rows
        part = (again * gradient[chunk[1]]).sum()
        return part - part.detach() + value, sum(len(ids[i]) for i in chunk[1])

    return [partial(loss_part, *both) for both in zip(own_chunks, embedded, strict=True)]
