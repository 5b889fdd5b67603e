"""Embeddings of texts.

Equal texts are encoded once. Texts are sorted by length and encoded in batches of a bounded number
of tokens; the results are returned in input order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simllm.errors import InputError
from simllm.model.inference import Engine
from simllm.model.tokenizer import PAD_ID, Tokenizer
from simllm.text_cleaning import LONGEST

Ids = tuple[int, ...]  # one input of the encoder, <s> and </s> included
Windows = list[Ids]  # the windows of one text; usually one window with the whole text
Floats = NDArray[np.float32]
Reduced = TypeVar("Reduced")

ON_LONG = ("truncate", "window", "error")
_EMPTY = 2  # tokens of an empty text: <s> and </s>


@dataclass(frozen=True)
class Tokenized:
    """n tokenized texts."""

    inputs: list[Windows]  # one for each text
    long: list[int] = field(default_factory=list)  # indices of texts longer than the longest input

    @property
    def empty(self) -> NDArray[np.bool_]:
        """(n,) bool, true for texts that are empty after cleaning."""
        return np.array([len(windows[0]) == _EMPTY for windows in self.inputs], bool)

    @property
    def repeated(self) -> int:
        """Number of texts that equal an earlier text after cleaning."""
        return len(self.inputs) - len({tuple(windows) for windows in self.inputs})


class TooLongError(InputError):
    """A text is longer than the longest input; `index` is its place in the list of texts."""

    def __init__(self, index: int, length: str) -> None:
        super().__init__(length)
        self.index = index


def tokenize(tokenizer: Tokenizer, texts: Sequence[str], longest: int, on_long: str) -> Tokenized:
    """Clean and tokenize n texts.

    Only the first `simllm.text_cleaning.LONGEST` characters of a text are read. A text with more characters
    counts as long, too.

    Args:
        tokenizer: The tokenizer of the model folder.
        texts: n texts.
        longest: The longest input of the encoder, in tokens.
        on_long: How to treat a longer text: `truncate` it, split it into consecutive windows
            (`window`), or raise an `error`.

    Raises:
        TooLongError: A text is long and `on_long` is `error`.
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
    return Tokenized(inputs, long)


def _windows(ids: list[int], longest: int) -> list[Ids]:
    """Split the ids of a text into consecutive windows of `longest` tokens, each with <s> and </s>."""
    first, *body, last = ids
    size = longest - 2
    return [(first, *body[start : start + size], last) for start in range(0, len(body) or 1, size)]


def embed(engine: Engine, texts: Tokenized, pool: Callable[[Tensor, Tensor], Tensor]) -> Floats:
    """Return the embeddings of n texts, (n, D) float32.

    Args:
        engine: The encoder.
        texts: n tokenized texts, at least one.
        pool: Pools (B, L, D) states with a (B, L) mask into (B, D) embeddings.
    """
    pooled = run_encoder(engine, texts, lambda hidden, mask: pool(hidden, mask).float().cpu().numpy())
    return np.stack([mean_of_windows(pooled, windows) for windows in texts.inputs])


def mean_of_windows(embeddings: Mapping[Ids, Floats], windows: Windows) -> Floats:
    """Return the embedding of a text, (D,): the mean of its windows, weighted by their numbers of tokens."""
    if len(windows) == 1:
        return embeddings[windows[0]]
    weights = [len(ids) - 2 for ids in windows]
    return np.average([embeddings[ids] for ids in windows], axis=0, weights=weights).astype(np.float32)


def run_encoder(
    engine: Engine, texts: Tokenized, reduce: Callable[[Tensor, Tensor], Iterable[Reduced]]
) -> dict[Ids, Reduced]:
    """Run the encoder once on every distinct window.

    The batches depend on the set of windows, not on the order of the texts.

    Args:
        engine: The encoder.
        texts: n tokenized texts.
        reduce: Turns (B, L, D) states and a (B, L) mask into one result for each of the B windows.

    Returns:
        The result of each window.
    """
    unique = sorted({ids for windows in texts.inputs for ids in windows}, key=lambda ids: (len(ids), ids))
    reduced: dict[Ids, Reduced] = {}
    with torch.inference_mode():
        for rows in batch_slices(unique, engine.batch_tokens):
            tokens, mask = (tensor.to(engine.device) for tensor in pad(unique[rows]))
            reduced.update(zip(unique[rows], reduce(engine(tokens, mask), mask), strict=True))
    return reduced


def batch_slices(sorted_ids: Sequence[Sequence[int]], batch_tokens: int) -> Iterator[slice]:
    """Yield slices of at most `batch_tokens` tokens, padding included, or of one longer text.

    Args:
        sorted_ids: The token ids of n texts, sorted by length.
        batch_tokens: The largest number of tokens in a batch.
    """
    start = 0
    for end, tokens in enumerate(sorted_ids):  # `tokens` is the longest so far
        if end > start and (end + 1 - start) * len(tokens) > batch_tokens:
            yield slice(start, end)
            start = end
    if sorted_ids:
        yield slice(start, len(sorted_ids))


def pad(ids: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Pad the token ids of B texts to the longest one.

    Returns:
        (B, L) token ids, and the (B, L) mask, true for tokens that are not padding.
    """
    lengths = torch.tensor([len(text) for text in ids])
    longest = int(lengths.max())
    tokens = torch.tensor([[*text, *[PAD_ID] * (longest - len(text))] for text in ids])
    return tokens, torch.arange(longest) < lengths[:, None]  # in other vocabularies, PAD_ID may be a word
