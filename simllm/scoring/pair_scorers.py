"""Scorers of tokenized pairs: one compares pooled embeddings, the other matches tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from simllm.model.inference import Engine
from simllm.model.meaning_head import MeaningHead
from simllm.scoring import token_matching
from simllm.scoring.encode import Ids, Tokenized, batch_slices, embed, run_encoder

Values = NDArray[np.float64]
Windows = list[Ids]  # the windows of one text
_TOKENS = 16_384  # tokens whose states are in memory at once: 16 MB with 256 dimensions


class PairValues(NamedTuple):
    """What a scorer tells about n pairs.

    Attributes:
        scores: (n,) scores.
        same: (n,) probabilities that the texts say the same; None without a meaning head.
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
class MeaningScorer:
    """Compares pooled embeddings, and lets the meaning head compare the texts token by token.

    The encoder reads each text once for both.
    """

    engine: Engine
    pool: Callable[[Tensor, Tensor], Tensor]
    similarity: Callable[[NDArray[np.floating], NDArray[np.floating]], Values]
    head: MeaningHead
    slope: float
    intercept: float

    def __call__(self, texts: Tokenized) -> PairValues:
        """Score n pairs, given as 2n texts: n candidates and then their n references."""
        n = len(texts.inputs) // 2
        scores, same = np.zeros(n), np.zeros(n)
        for pairs in _parts(texts.inputs[:n], texts.inputs[n:]):
            sides = [[texts.inputs[i] for i in pairs], [texts.inputs[n + i] for i in pairs]]
            read = run_encoder(self.engine, Tokenized(sides[0] + sides[1]), self._reduce)
            candidates, references = ([_joined(read, windows) for windows in side] for side in sides)
            scores[pairs] = self.similarity(
                np.stack([text[0] for text in candidates]), np.stack([text[0] for text in references])
            )
            logits = self._logits([text[1] for text in candidates], [text[1] for text in references])
            equal = [a == b for a, b in zip(*sides, strict=True)]
            same[pairs] = np.where(equal, 1.0, _sigmoid(self.slope * logits + self.intercept))
        return PairValues(scores, same)

    def _reduce(self, hidden: Tensor, mask: Tensor) -> list[tuple[NDArray[np.float32], Tensor]]:
        """Return the embedding of each of B texts, (D,), and its projected states, (L, W)."""
        embeddings = self.pool(hidden, mask).float().cpu().numpy()
        projected, lengths = self.head.project(hidden), mask.sum(1).tolist()
        return [
            (row, states[:length]) for row, states, length in zip(embeddings, projected, lengths, strict=True)
        ]

    def _logits(self, first: list[Tensor], second: list[Tensor]) -> Values:
        """Return the (n,) logits of n pairs of projected states; neighbours in length are padded together."""
        sizes = [max(len(a), len(b)) for a, b in zip(first, second, strict=True)]
        order = sorted(range(len(sizes)), key=lambda i: sizes[i])
        logits = np.zeros(len(sizes))
        with torch.inference_mode():
            for rows in batch_slices([range(sizes[i]) for i in order], self.engine.batch_tokens):
                chosen = order[rows]
                a, a_mask = _padded([first[i] for i in chosen])
                b, b_mask = _padded([second[i] for i in chosen])
                logits[chosen] = self.head(a, a_mask, b, b_mask).double().cpu().numpy()
        return logits


def _sigmoid(x: Values) -> Values:
    return np.exp(-np.logaddexp(0.0, -x))


def _padded(states: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Pad the states of B texts to (B, L, W); return them with their (B, L) mask."""
    padded = pad_sequence(states, batch_first=True)
    lengths = torch.tensor([len(text) for text in states], device=padded.device)
    return padded, torch.arange(padded.shape[1], device=padded.device) < lengths[:, None]


def _joined(
    read: dict[Ids, tuple[NDArray[np.float32], Tensor]], windows: Windows
) -> tuple[NDArray[np.float32], Tensor]:
    """Return the embedding and the projected states of one text, from those of its windows."""
    if len(windows) == 1:
        return read[windows[0]]
    parts = [read[window] for window in windows]
    weights = [len(window) - 2 for window in windows]
    return np.average([part[0] for part in parts], axis=0, weights=weights), torch.cat([p[1] for p in parts])


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
        for pairs in _parts(texts.inputs[:n], texts.inputs[n:]):
            part = Tokenized([texts.inputs[i] for i in (*pairs, *(n + i for i in pairs))])
            states = token_matching.token_states(self.engine, part)
            weights = [self.weights[token_matching.token_ids(windows)] for windows in part.inputs]
            for k, i in enumerate(pairs):
                a, b = k, k + len(pairs)
                if len(weights[a]) and len(weights[b]):
                    sides = token_matching.match(states[a], states[b], weights[a], weights[b])
                    values[i] = token_matching.TOKEN_SIMILARITIES[self.similarity](*sides)
        return PairValues(values)


def _parts(candidates: list[Windows], references: list[Windows]) -> Iterator[list[int]]:
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
