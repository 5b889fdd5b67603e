"""From the tokens of pairs to their scores: by one embedding a text, or token by token."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from simllm.model.inference import Engine
from simllm.scoring import token_matching
from simllm.scoring.encode import Tokenized, embeddings

Values = NDArray[np.float64]
# 2n texts, n candidates and then their n references, -> (n,) scores
Measure = Callable[[Tokenized], Values]


@dataclass(frozen=True)
class Pooled:
    """Pools each text's states into one embedding and compares two of these."""

    engine: Engine
    pool: Callable[[Tensor, Tensor], Tensor]
    similarity: Callable[[NDArray[np.floating], NDArray[np.floating]], Values]

    def __call__(self, texts: Tokenized) -> Values:
        """Score n pairs."""
        both = embeddings(self.engine, texts, self.pool)
        n = len(both) // 2
        return self.similarity(both[:n], both[n:])


@dataclass(frozen=True)
class ByToken:
    """Matches the tokens of two texts; `weights` (V,) says what a token counts."""

    engine: Engine
    weights: Values
    name: str  # of `matching.MEASURES`

    def __call__(self, texts: Tokenized) -> Values:
        """Score n pairs, a thousand at a time: the states of all would fill the memory."""
        n = len(texts.inputs) // 2
        values = np.zeros(n)
        for start in range(0, n, 1000):
            rows = [*range(start, min(start + 1000, n))]
            part = Tokenized([texts.inputs[i] for i in (*rows, *(n + i for i in rows))])
            states = token_matching.states(self.engine, part)
            weights = [self.weights[ids] for ids in token_matching.tokens(part)]
            for k, i in enumerate(rows):
                a, b = k, k + len(rows)
                if len(weights[a]) and len(weights[b]):
                    similar = token_matching.cosines(states[a], states[b])
                    values[i] = token_matching.MEASURES[self.name](similar, weights[a], weights[b])
        return values
