"""Tokenization of many texts; long texts are cut off, refused, or divided into windows."""

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
    """Check that an argument is a list (or another iterable) of texts, and return it as a list.

    Args:
        name: The name of the argument, for error messages.
        texts: The argument: n texts.

    Raises:
        TypeError: `texts` is a single string or not iterable, or an item is not a string.
    """
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
        inputs: For each text, its windows. A window is a tuple of token ids that the encoder reads at once,
            from <s> to </s>. Most texts have one window; only a long text may have several.
        long: Indices of the long texts: those with more tokens than the encoder can read at once, or with
            more than 10,000 characters.
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
    """Error for a text that is too long for the encoder, if the user does not allow long texts.

    Attributes:
        index: The index of the text in the list of texts.
    """

    def __init__(self, index: int, length: str) -> None:
        super().__init__(length)
        self.index = index


def tokenize(tokenizer: Tokenizer, texts: Sequence[str], longest: int, on_long: str) -> Tokenized:
    """Clean and tokenize n texts; long texts are cut, split or refused.

    Cleaning removes comment marks, for example, and converts letters to lower-case ASCII. Only the first
    10,000 characters of a text are read. A text is long if it has more characters than that, or more tokens
    than the encoder can read at once.

    Args:
        tokenizer: The tokenizer of the model folder.
        texts: n texts.
        longest: Largest number of tokens that the encoder can read at once.
        on_long: The treatment of a long text: `truncate` cuts the text, `window` splits it into consecutive
            windows (pieces), and `error` raises an error.

    Returns:
        The token ids of each text, as a list of windows, and the indices of the long texts. A text that is
        not split has one window.

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
    """Split a text's token ids into consecutive windows: pieces that the encoder can read at once.

    Args:
        ids: The token ids of the text, <s> and </s> included.
        longest: Largest number of tokens in a window.

    Returns:
        The token ids of each window. Each window begins with <s> and ends with </s>.
    """
    first, *body, last = ids
    size = longest - 2
    return [(first, *body[start : start + size], last) for start in range(0, len(body) or 1, size)]
