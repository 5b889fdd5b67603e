"""Scorer that compares the embeddings of two texts: one vector for each text."""

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
        engine: The encoder.
        pool: The pooling function. It takes (B, L, D) hidden states and a (B, L) mask, true for tokens that
            are not padding. It returns (B, D) embeddings: B texts of L tokens, hidden size D.
        similarity: A function that compares two (n, D) arrays of embeddings, and returns (n,) similarities.
    """

    engine: Engine
    pool: Callable[[Tensor, Tensor], Tensor]
    similarity: Callable[[NDArray[np.floating], NDArray[np.floating]], Floats]

    def __call__(self, texts: Tokenized) -> PairValues:
        """Score n pairs of texts.

        Args:
            texts: 2n tokenized texts: first the n candidates, then their n references.

        Returns:
            A `PairValues` object with (n,) scores in the attribute `scores`. Its attribute `same`, the
            probabilities that the two texts have the same meaning, is None: this scorer cannot estimate them.
        """
        embeddings = embed(self.engine, texts, self.pool)
        n = len(embeddings) // 2
        return PairValues(self.similarity(embeddings[:n], embeddings[n:]))
