"""Scorers of tokenized pairs: one compares pooled embeddings, the other matches tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from simllm.model.inference import Engine
from simllm.scoring import token_matching
from simllm.scoring.encode import Tokenized, Windows, embed

Values = NDArray[np.float64]
_TOKENS = 16_384  # tokens whose states are in memory at once: 16 MB with 256 dimensions


class PairValues(NamedTuple):
    """The results of a scorer for n pairs.

    Attributes:
        scores: (n,) scores.
        same: (n,) probabilities that the texts have the same meaning; None without a meaning head.
    """

    scores: Values
    same: Values | None = None


# Takes 2n texts, the n candidates and then their n references.
PairScorer = Callable[[Tokenized], PairValues]


@dataclass(frozen=True)
class PooledScorer:
    """Pools the token states of each text into one embedding and compares the two embeddings."""

    engine: Engine
    pool: Callable[[Tensor, Tensor], Tensor]
    similarity: Callable[[NDArray[np.floating], NDArray[np.floating]], Values]

    def __call__(self, texts: Tokenized) -> PairValues:
        """Score n pairs, given as 2n texts: n candidates and then their n references."""
        embeddings = embed(self.engine, texts, self.pool)
        n = len(embeddings) // 2
        return PairValues(self.similarity(embeddings[:n], embeddings[n:]))


@dataclass(frozen=True)
class TokenScorer:
    """Matches each token with the most similar token of the other text (`token_matching`)."""

    engine: Engine
    weights: Values  # (V,) weight of each token of the vocabulary
    similarity: str  # a key of `token_matching.TOKEN_SIMILARITIES`

    def __call__(self, texts: Tokenized) -> PairValues:
        """Score n pairs, given as 2n texts: n candidates and then their n references."""
        n = len(texts.inputs) // 2
        values = np.zeros(n)
        for pairs in split_pairs(texts.inputs[:n], texts.inputs[n:]):
            part = Tokenized([texts.inputs[i] for i in (*pairs, *(n + i for i in pairs))])
            states = token_matching.token_states(self.engine, part)
            weights = [self.weights[token_matching.token_ids(windows)] for windows in part.inputs]
            for k, i in enumerate(pairs):
                a, b = k, k + len(pairs)
                if len(weights[a]) and len(weights[b]):
                    sides = token_matching.match(states[a], states[b], weights[a], weights[b])
                    values[i] = token_matching.TOKEN_SIMILARITIES[self.similarity](*sides)
        return PairValues(values)


def split_pairs(candidates: list[Windows], references: list[Windows]) -> Iterator[list[int]]:
    """Yield the indices of pairs that have at most `_TOKENS` tokens together, or of one longer pair.

    The pairs are sorted by the length of their reference, and pairs with equal references are
    neighbours, so that the reference is usually encoded once.
    """
    sizes = [sum(map(len, (*a, *b))) for a, b in zip(candidates, references, strict=True)]
    part: list[int] = []
    room = _TOKENS
    for i in sorted(range(len(sizes)), key=lambda i: (sum(map(len, references[i])), references[i])):
        if part and sizes[i] > room:
            yield part
            part, room = [], _TOKENS
        part.append(i)
        room -= sizes[i]
    if part:
        yield part
