"""Scorers of tokenized text pairs: `PooledScorer` compares text embeddings, `TokenScorer` matches tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from simllm.model.inference import Engine
from simllm.scoring import token_matching
from simllm.scoring.embed_texts import embed
from simllm.scoring.token_windows import Tokenized, Windows

Values = NDArray[np.float64]
_TOKENS = 16_384  # tokens whose states are in memory at once: 16 MB with 256 dimensions


class PairValues(NamedTuple):
    """The results of a scorer for n text pairs.

    Attributes:
        scores: (n,) scores.
        same: (n,) probabilities that the two texts have the same meaning; None if the model cannot
            estimate them.
    """

    scores: Values
    same: Values | None = None


# A function that takes 2n tokenized texts: first the n candidates, then their n references.
PairScorer = Callable[[Tokenized], PairValues]


@dataclass(frozen=True)
class PooledScorer:
    """Scorer that compares the embeddings of the two texts in each pair.

    Attributes:
        engine: The encoder.
        pool: The pooling function. It takes (B, L, D) hidden states and a (B, L) mask, and returns (B, D)
            embeddings: B texts of L tokens, hidden size D.
        similarity: A function that compares two (n, D) arrays of embeddings, and returns (n,) similarities.
    """

    engine: Engine
    pool: Callable[[Tensor, Tensor], Tensor]
    similarity: Callable[[NDArray[np.floating], NDArray[np.floating]], Values]

    def __call__(self, texts: Tokenized) -> PairValues:
        """Score n pairs of texts.

        Args:
            texts: 2n tokenized texts: first the n candidates, then their n references.

        Returns:
            (n,) scores. The result has no probabilities of the same meaning (`same` is None).
        """
        embeddings = embed(self.engine, texts, self.pool)
        n = len(embeddings) // 2
        return PairValues(self.similarity(embeddings[:n], embeddings[n:]))


@dataclass(frozen=True)
class TokenScorer:
    """Scorer that matches each token with the most similar token of the other text.

    Attributes:
        engine: The encoder.
        weights: (V,) weight of each token in the vocabulary.
        similarity: The name of the score that is computed from the matched tokens: "precision", "recall" or
            "f1".
    """

    engine: Engine
    weights: Values
    similarity: str

    def __call__(self, texts: Tokenized) -> PairValues:
        """Score n pairs of texts.

        Args:
            texts: 2n tokenized texts: first the n candidates, then their n references.

        Returns:
            (n,) scores. The result has no probabilities of the same meaning (`same` is None).
        """
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
    """Split n text pairs into groups of at most 16,384 tokens, to limit the memory for hidden states.

    Pairs are first sorted by the length of their references, and pairs with the same length by the tokens of
    the reference. Pairs with equal references are then neighbours, and usually in the same group. Within a
    group, a repeated reference is encoded only once.

    Args:
        candidates: For each candidate, its windows: the token ids of consecutive pieces of the text.
        references: For each reference, its windows.

    Yields:
        For each group, the indices of its pairs. A pair with more than 16,384 tokens is a group of its own.
    """
    sizes = [sum(map(len, (*a, *b))) for a, b in zip(candidates, references, strict=True)]
    part: list[int] = []
    space = _TOKENS
    for i in sorted(range(len(sizes)), key=lambda i: (sum(map(len, references[i])), references[i])):
        if part and sizes[i] > space:
            yield part
            part, space = [], _TOKENS
        part.append(i)
        space -= sizes[i]
    if part:
        yield part
