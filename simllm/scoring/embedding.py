"""Embeddings of tokenized texts, and the scorers that compare them, with or without a meaning head."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from simllm.array_types import Floats, Floats32
from simllm.model.engines import Engine, batch_slices, pad
from simllm.model.meaning_head import MeaningHead
from simllm.model.pooling import of_last_layer
from simllm.model.saved_model import MeaningInfo
from simllm.scoring.tokens import Ids, PairValues, Tokenized, Windows, split_pairs

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


@dataclass(frozen=True)
class MeaningScorer:
    """Scorer that computes embeddings and the inputs of the meaning head in one run of the encoder.

    Attributes:
        pool: Takes (B, L, D) hidden states and a (B, L) mask, and returns (B, D) embeddings.
        similarity: Compares two (n, D) arrays of embeddings, and returns (n,) similarities.
        info: Has the slope and the intercept that turn the head's logits into calibrated probabilities.
    """

    engine: Engine
    pool: Callable[[Tensor, Tensor], Tensor]
    similarity: Callable[[NDArray[np.floating], NDArray[np.floating]], Floats]
    head: MeaningHead
    info: MeaningInfo

    def __call__(self, texts: Tokenized) -> PairValues:
        """Score n pairs by similarity and by probability of the same meaning."""
        n = len(texts.inputs) // 2
        # Equal texts keep the probability 1: the head never sees them.
        scores, same = np.zeros(n), np.ones(n)
        for pairs in split_pairs(texts.inputs[:n], texts.inputs[n:]):
            sides = [[texts.inputs[i] for i in pairs], [texts.inputs[n + i] for i in pairs]]
            texts_of_pairs = Tokenized(sides[0] + sides[1])
            read = run_encoder(self.engine, texts_of_pairs, self._reduce, self.head.config.encoder_layers)
            rows = {ids: row for ids, (row, _) in read.items()}
            states = {ids: projected for ids, (_, projected) in read.items()}
            embeddings = [np.stack([mean_of_windows(rows, text) for text in side]) for side in sides]
            scores[pairs] = self.similarity(embeddings[0], embeddings[1])
            different = [k for k, (a, b) in enumerate(zip(*sides, strict=True)) if a != b]
            # The head reads a long text at once, all windows together, while the encoder cannot.
            joined = [[torch.cat([states[ids] for ids in side[k]]) for k in different] for side in sides]
            logits = self._logits(joined[0], joined[1])
            same[[pairs[k] for k in different]] = _sigmoid(self.info.slope * logits + self.info.intercept)
        return PairValues(scores, same)

    def _reduce(self, hidden: Tensor, mask: Tensor) -> list[tuple[Floats32, Tensor]]:
        """Compute each text's (D,) embedding and (tokens, W) vectors from (B, L, N * D) states of N layers.

        The meaning head reads the vectors, one of length W for each token; a linear layer of the head
        computes them.
        """
        last = of_last_layer(hidden, self.engine.encoder.config.hidden_size)
        embeddings = self.pool(last, mask).float().cpu().numpy()
        projected, lengths = self.head.project(hidden), mask.sum(1).tolist()
        return [
            (row, states[:length]) for row, states, length in zip(embeddings, projected, lengths, strict=True)
        ]

    def _logits(self, first: Sequence[Tensor], second: Sequence[Tensor]) -> Floats:
        """Run the meaning head on the (tokens, W) vectors of n pairs; return (n,) logits."""
        sizes = [max(len(a), len(b)) for a, b in zip(first, second, strict=True)]
        # Neighbours of similar length need little padding.
        order = sorted(range(len(sizes)), key=lambda i: sizes[i])
        logits = np.zeros(len(sizes))
        with torch.inference_mode():
            for rows in batch_slices([range(sizes[i]) for i in order], self.engine.batch_tokens):
                chosen = order[rows]
                a, a_mask = _padded([first[i] for i in chosen])
                b, b_mask = _padded([second[i] for i in chosen])
                logits[chosen] = self.head(a, a_mask, b, b_mask, self.engine.attention).double().cpu().numpy()
        return logits


def _sigmoid(x: Floats) -> Floats:
    # 1 / (1 + exp(-x)) would overflow for very negative x.
    return np.exp(-np.logaddexp(0.0, -x))


def _padded(states: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Pad B texts of (tokens, W) vectors to (B, L, W), and return the (B, L) mask, too."""
    padded = pad_sequence(states, batch_first=True)
    lengths = torch.tensor([len(text) for text in states], device=padded.device)
    return padded, torch.arange(padded.shape[1], device=padded.device) < lengths[:, None]
