"""Texts to embeddings: deduplicate, sort, token-budget batches, scatter back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simllm.errors import InputError
from simllm.model.inference import Engine
from simllm.model.tokenizer import PAD_ID, Tokenizer
from simllm.text import LONGEST

Ids = tuple[int, ...]  # one input of the encoder, <s> and </s> included
Floats = NDArray[np.float32]

ON_LONG = ("truncate", "window", "error")
_EMPTY = 2  # tokens of an empty text: <s> and </s>


@dataclass(frozen=True)
class Tokenized:
    """n texts as inputs of the encoder."""

    inputs: list[list[Ids]]  # of each text its input, or the windows it was cut into
    long: list[int] = field(default_factory=list)  # which of them are longer than the longest input

    @property
    def empty(self) -> NDArray[np.bool_]:
        """(n,) true where cleaning leaves nothing of a text."""
        return np.array([len(windows[0]) == _EMPTY for windows in self.inputs], bool)

    @property
    def repeated(self) -> int:
        """Texts that are the same as another one, after cleaning."""
        return len(self.inputs) - len({tuple(windows) for windows in self.inputs})


class TooLongError(InputError):
    """A text is longer than what is read; `index` says which one."""

    def __init__(self, index: int, length: str) -> None:
        super().__init__(length)
        self.index = index


def tokenized(tokenizer: Tokenizer, texts: Sequence[str], longest: int, on_long: str) -> Tokenized:
    """Clean and tokenize `texts`; what is done with more than `longest` tokens is one of `ON_LONG`.

    A window has as many tokens as fit, and starts where the one before it ends. A text of more than
    `simllm.text.LONGEST` characters, of which the rest is never read, counts as long. Raises
    TooLongError for a long text if so asked.
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
    first, *body, last = ids
    room = longest - 2
    return [(first, *body[start : start + room], last) for start in range(0, len(body) or 1, room)]


def embeddings(engine: Engine, texts: Tokenized, pool: Callable[[Tensor, Tensor], Tensor]) -> Floats:
    """Embed n texts, at least one, -> (n, D) float32; several windows count by their tokens."""
    found = run(engine, texts, lambda hidden, mask: pool(hidden, mask).float().cpu().numpy())
    rows = [
        found[windows[0]]
        if len(windows) == 1
        else np.average([found[ids] for ids in windows], axis=0, weights=[len(ids) - 2 for ids in windows])
        for windows in texts.inputs
    ]
    return np.stack(rows).astype(np.float32, copy=False)


def run(
    engine: Engine, texts: Tokenized, reduce: Callable[[Tensor, Tensor], Iterable[Floats]]
) -> dict[Ids, Floats]:
    """Run every different input once, neighbours in length together.

    `reduce` makes of the (B, L, D) states and the (B, L) mask what is kept of each input.
    What is computed depends on the set of texts only, not on their order.
    """
    unique = sorted({ids for windows in texts.inputs for ids in windows}, key=lambda ids: (len(ids), ids))
    found: dict[Ids, Floats] = {}
    with torch.inference_mode():
        for rows in batches(unique, engine.batch_tokens):
            tokens, mask = (tensor.to(engine.device) for tensor in padded(unique[rows]))
            found.update(zip(unique[rows], reduce(engine(tokens, mask), mask), strict=True))
    return found


def batches(sorted_ids: Sequence[Sequence[int]], batch_tokens: int) -> Iterator[slice]:
    """Neighbours of about one length, at most `batch_tokens` tokens together (or one text)."""
    start = 0
    for end, tokens in enumerate(sorted_ids):  # the longest so far, since they are sorted
        if end > start and (end + 1 - start) * len(tokens) > batch_tokens:
            yield slice(start, end)
            start = end
    if sorted_ids:
        yield slice(start, len(sorted_ids))


def padded(ids: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """(B, L) token ids, padded to the longest, and the (B, L) mask of what is not padding."""
    longest = max(map(len, ids))
    tokens = torch.tensor([[*text, *[PAD_ID] * (longest - len(text))] for text in ids])
    return tokens, tokens != PAD_ID
