"""From texts to the scores of pairs: token ids, embeddings, and the scorers that compare them.

A text is *long* if it has more tokens than the encoder can read at once, or more than 10,000 characters. It
is cut off, refused, or divided into windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from simllm.array_types import Floats, Floats32
from simllm.errors import InputError
from simllm.model.engines import Engine, batch_slices, pad
from simllm.model.network import MeaningHead, of_last_layer
from simllm.model.saved_model import MeaningInfo
from simllm.model.tokenizer import Tokenizer
from simllm.text_cleaning import LONGEST

Ids = tuple[int, ...]  # one input of the encoder, <s> and </s> included
Windows = list[Ids]  # the windows of one text; usually one window with the whole text
Reduced = TypeVar("Reduced")

ON_LONG = ("truncate", "window", "error")
_EMPTY = 2  # tokens of an empty text: <s> and </s>


@dataclass(frozen=True)
class Tokenized:
    """The token ids of n texts.

    Attributes:
        inputs: For each text, its windows.
        long: Indices of the long texts.
        unreadable: Number of texts that are empty after cleaning, but were not empty before.
    """

    inputs: list[Windows]
    long: list[int] = field(default_factory=list)
    unreadable: int = 0

    @property
    def empty(self) -> NDArray[np.bool_]:
        """(n,) bool for the n texts, true for a text that is empty after cleaning."""
        return np.array([len(windows[0]) == _EMPTY for windows in self.inputs], bool)

    @property
    def repeated(self) -> int:
        """Number of texts that have the same token ids as an earlier text in the list."""
        return len(self.inputs) - len({tuple(windows) for windows in self.inputs})


class TooLongError(InputError):
    """Error for a long text if the user does not allow long texts; `index` is its position in the list."""

    def __init__(self, index: int, length: str) -> None:
        super().__init__(length)
        self.index = index


def tokenize(tokenizer: Tokenizer, texts: Sequence[str], longest: int, on_long: str) -> Tokenized:
    """Clean and tokenize n texts of at most `longest` tokens.

    `on_long` tells what happens to a long text: `truncate` cuts it, `window` splits it into windows, and
    `error` raises TooLongError. Only the first 10,000 characters of a text are read.
    """
    whole = tokenizer.encode(texts)
    long = [
        i
        for i, (text, ids) in enumerate(zip(texts, whole, strict=True))
        if len(ids) > longest or len(text) > LONGEST
    ]
    if long and on_long == "error":
        text, ids = texts[long[0]], whole[long[0]]
        if len(ids) > longest:
            raise TooLongError(long[0], f"{len(ids)} tokens, more than the model's {longest}")
        raise TooLongError(long[0], f"{len(text)} characters, more than {LONGEST}")
    inputs = [[tuple(ids)] for ids in whole]
    for i in long:
        inputs[i] = _windows(whole[i], longest)[: None if on_long == "window" else 1]
    left_empty = (text for text, ids in zip(texts, whole, strict=True) if len(ids) == _EMPTY)
    return Tokenized(inputs, long, sum(bool(text.strip()) for text in left_empty))


def _windows(ids: list[int], longest: int) -> list[Ids]:
    """Split token ids into windows of at most `longest` tokens, each with the <s> and </s> of the text."""
    # `or 1` below gives a text without tokens one window, <s> and </s>.
    first, *body, last = ids
    size = longest - 2
    return [(first, *body[start : start + size], last) for start in range(0, len(body) or 1, size)]


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


_TOKENS = 16_384  # tokens whose states are in memory at once: 16 MB with 256 dimensions


def split_pairs(candidates: list[Windows], references: list[Windows]) -> Iterator[list[int]]:
    """Split n pairs, given as the windows of their texts, into groups of at most 16,384 tokens.

    Each group is a list of indices. A pair with more tokens is a group of its own.
    """
    sizes = [sum(map(len, (*a, *b))) for a, b in zip(candidates, references, strict=True)]
    part: list[int] = []
    space = _TOKENS
    # Pairs with equal references become neighbours, and usually share a group, which encodes the reference
    # once.
    for i in sorted(range(len(sizes)), key=lambda i: (sum(map(len, references[i])), references[i])):
        if part and sizes[i] > space:
            yield part
            part, space = [], _TOKENS
        part.append(i)
        space -= sizes[i]
    if part:
        yield part


class PairValues(NamedTuple):
    """The results of a scorer for n pairs.

    Attributes:
        scores: (n,) scores.
        same: (n,) probabilities that the two texts have the same meaning; None if the model has no head.
    """

    scores: Floats
    same: Floats | None = None


# A function that takes 2n tokenized texts: first the n candidates, then their n references.
PairScorer = Callable[[Tokenized], PairValues]


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
