"""Tokenization of many texts; long texts are cut off, refused, or divided into windows.

A text is *long* if it has more tokens than the encoder can read at once, or more than 10,000 characters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simllm.array_types import Floats
from simllm.errors import InputError
from simllm.model.tokenizer import Tokenizer
from simllm.text_cleaning import LONGEST

Ids = tuple[int, ...]  # one input of the encoder, <s> and </s> included
Windows = list[Ids]  # the windows of one text; usually one window with the whole text

ON_LONG = ("truncate", "window", "error")
_EMPTY = 2  # tokens of an empty text: <s> and </s>


def text_list(name: str, texts: Sequence[str]) -> list[str]:
    """Return an argument as a list of texts; raise TypeError if it is a lone string or has other items."""
    # A string is an iterable of strings: its characters would be scored one by one.
    if isinstance(texts, str):
        raise TypeError(f"{name}: expected a list of texts, got a lone string; write [text]")
    if isinstance(texts, bytes | Mapping) or not isinstance(texts, Iterable):
        raise TypeError(f"{name}: expected a list of texts, got {type(texts).__name__}")
    texts = list(texts)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{name}[{index}]: expected a text, got {type(text).__name__}")
    return texts


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


def score_empty_texts(
    pairs: Sequence[tuple[Any, ...]],
    texts: Tokenized,
    values: NDArray[np.float64],
    same: NDArray[np.float64] | None,
) -> int:
    """Overwrite the (n,) `values` and `same` of pairs with a text that is empty after cleaning; count them.

    Such a pair gets 1 if its two texts, before cleaning, are equal up to white space; otherwise 0.
    """
    n = len(pairs)
    empty = texts.empty
    either = empty[:n] | empty[n:]
    for i in np.flatnonzero(either).tolist():
        values[i] = float(pairs[i][0].split() == pairs[i][1].split())
        if same is not None:
            same[i] = values[i]
    return int(either.sum())


_READS = "the model reads ASCII"


def about_truncated(texts: int, truncated: int, max_length: int, on_long: str) -> list[str]:
    """Return the warning about `truncated` texts, longer than `max_length` tokens, if there are any."""
    windows = f"read in windows of {max_length} tokens, up to {LONGEST:,} characters"
    treatment = windows if on_long == "window" else f"cut at {max_length} tokens"
    return [f"{truncated} of {texts} texts {treatment}"] if truncated else []


def about_unreadable(texts: int, unreadable: int) -> list[str]:
    """Return the warning about texts that are empty after cleaning, but were not before, if there are any."""
    return [f"{unreadable} of {texts} texts are empty after cleaning ({_READS})"] if unreadable else []


def about_empty_pairs(pairs: int, empty: int, unreadable: int) -> list[str]:
    """Return the warning about pairs with a text that is empty after cleaning, if there are any.

    `unreadable` counts the texts that were not empty before cleaning.
    """
    how = f"empty after cleaning ({_READS})" if unreadable else "empty"
    scores = "they score 1 if both texts are equal, otherwise 0"
    return [f"{empty} of {pairs} pairs have a text that is {how}; {scores}"] if empty else []
