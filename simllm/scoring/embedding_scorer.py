"""Scorer that compares the embeddings of two texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from simllm.array_types import Floats
from simllm.model.exact_and_fast_mode import Engine
from simllm.scoring.embed_texts import embed
from simllm.scoring.pair_scorer_interface import PairValues
from simllm.scoring.token_windows import Tokenized


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
