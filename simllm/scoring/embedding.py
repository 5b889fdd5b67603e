"""Embedding of many tokenized texts, in batches of limited numbers of tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simllm.array_types import Floats, Floats32
from simllm.model.batches import batch_slices, pad
from simllm.model.engines import Engine
from simllm.scoring.tokens import Ids, PairValues, Tokenized, Windows

Reduced = TypeVar("Reduced")


def embed(engine: Engine, texts: Tokenized, pool: Callable[[Tensor, Tensor], Tensor]) -> Floats32:
    """Compute the (n, D) float32 embeddings of n texts, at least one.

    `pool` takes (B, L, D) hidden states and a (B, L) mask, and returns (B, D) embeddings.
    """
    pooled = run_encoder(engine, texts, lambda hidden, mask: pool(hidden, mask).float().cpu().numpy())
    return np.stack([mean_of_windows(pooled, windows) for windows in texts.inputs])


def mean_of_windows(embeddings: Mapping[Ids, Floats32], windows: Windows) -> Floats32:
    """Compute the (D,) embedding of a text: the mean of its windows, weighted by their numbers of tokens."""
    if len(windows) == 1:
        return embeddings[windows[0]]
    # <s> and </s> stand in every window and do not count.
    weights = [len(ids) - 2 for ids in windows]
    return np.average([embeddings[ids] for ids in windows], axis=0, weights=weights).astype(np.float32)


def run_encoder(
    engine: Engine,
    texts: Tokenized,
    reduce: Callable[[Tensor, Tensor], Iterable[Reduced]],
    last_layers: int = 1,
) -> dict[Ids, Reduced]:
    """Run the encoder on the windows of texts, and compute one result for each window.

    `reduce` computes the results of a batch from (B, L, N * D) hidden states and a (B, L) mask. The states of
    the last N layers (`last_layers`) are joined along the last axis.
    """
    # Equal windows are encoded only once. Sorting by length saves padding; sorting by token ids makes the
    # batches, and so the rounding errors, independent of the order of the texts.
    unique = sorted({ids for windows in texts.inputs for ids in windows}, key=lambda ids: (len(ids), ids))
    reduced: dict[Ids, Reduced] = {}
    with torch.inference_mode():
        for rows in batch_slices(unique, engine.batch_tokens):
            tokens, mask = (tensor.to(engine.device) for tensor in pad(unique[rows]))
            reduced.update(zip(unique[rows], reduce(engine(tokens, mask, last_layers), mask), strict=True))
    return reduced


@dataclass(frozen=True)
class EmbeddingScorer:
    """Scorer that compares the embeddings of the two texts in each pair.

    Attributes:
        pool: Takes (B, L, D) hidden states and a (B, L) mask, and returns (B, D) embeddings.
        similarity: Compares two (n, D) arrays of embeddings, and returns (n,) similarities.
    """

    engine: Engine
    pool: Callable[[Tensor, Tensor], Tensor]
    similarity: Callable[[NDArray[np.floating], NDArray[np.floating]], Floats]

    def __call__(self, texts: Tokenized) -> PairValues:
        """Score n pairs; this scorer cannot estimate the probability of the same meaning."""
        embeddings = embed(self.engine, texts, self.pool)
        n = len(embeddings) // 2
        return PairValues(self.similarity(embeddings[:n], embeddings[n:]))
