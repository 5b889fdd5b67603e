"""Tokenization of many texts; long texts are cut off, refused, or divided into windows.

A text is *long* if it has more tokens than the encoder can read at once, or more than 10,000 characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

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
    """

    inputs: list[Windows]
    long: list[int] = field(default_factory=list)

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
    return Tokenized(inputs, long)


def _windows(ids: list[int], longest: int) -> list[Ids]:
    """Split token ids into windows of at most `longest` tokens, each with the <s> and </s> of the text."""
    # `or 1` below gives a text without tokens one window, <s> and </s>.
    first, *body, last = ids
    size = longest - 2
    return [(first, *body[start : start + size], last) for start in range(0, len(body) or 1, size)]
