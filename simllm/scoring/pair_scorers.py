"""From the tokens of pairs to their scores: by one embedding a text, or token by token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from simllm.model.inference import Engine
from simllm.scoring import token_matching
from simllm.scoring.encode import Ids, Tokenized, embeddings

Values = NDArray[np.float64]
Text = list[Ids]  # its windows
_TOKENS = 16_384  # tokens whose states are in memory at once: 16 MB with 256 dimensions
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
    """Matches the tokens of two texts; `weights` (V,) holds the weight of each token."""

    engine: Engine
    weights: Values
    name: str  # of `token_matching.MEASURES`

    def __call__(self, texts: Tokenized) -> Values:
        """Score n pairs."""
        n = len(texts.inputs) // 2
        values = np.zeros(n)
        for rows in _parts(texts.inputs[:n], texts.inputs[n:]):
            part = Tokenized([texts.inputs[i] for i in (*rows, *(n + i for i in rows))])
            states = token_matching.states(self.engine, part)
            weights = [self.weights[token_matching.tokens(windows)] for windows in part.inputs]
            for k, i in enumerate(rows):
                a, b = k, k + len(rows)
                if len(weights[a]) and len(weights[b]):
                    sides = map(
                        token_matching.Side,
                        token_matching.best(states[a], states[b]),
                        (weights[a], weights[b]),
                    )
                    values[i] = token_matching.MEASURES[self.name](*sides)
        return values


def _parts(candidates: list[Text], references: list[Text]) -> Iterator[list[int]]:
    """Yield the numbers of the pairs, of at most `_TOKENS` tokens together (or one pair).

    Pairs of one reference stay together, so that it is encoded once; neighbours have about one length.
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
