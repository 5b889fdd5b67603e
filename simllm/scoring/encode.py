"""Tokenization and embedding of many texts.

Equal texts are encoded only once. The texts are sorted by length and encoded in batches, each with a limited
number of tokens. The results are returned in the order of the input.
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
        """(n,) bool, true for texts that are empty after cleaning."""
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
    """Clean and tokenize n texts.

    Only the first 10,000 characters of a text are read. A text is long if it has more characters than that,
    or more tokens than the encoder can read at once.

    Args:
        tokenizer: The tokenizer of the model folder.
        texts: n texts.
        longest: Largest number of tokens that the encoder can read at once.
        on_long: The treatment of a long text: `truncate` cuts the text, `window` splits it into consecutive
            windows (pieces), and `error` raises an error.

    Returns:
        The token ids of each text, and the indices of the long texts.

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


def embed(engine: Engine, texts: Tokenized, pool: Callable[[Tensor, Tensor], Tensor]) -> Floats:
    """Compute the embeddings of n texts.

    Args:
        engine: The encoder.
        texts: n tokenized texts, at least one.
        pool: The pooling function. It takes (B, L, D) hidden states and a (B, L) mask, true for tokens that
            are not padding. It returns (B, D) embeddings: B texts of L tokens, hidden size D.

    Returns:
        (n, D) float32 embeddings.
    """
    pooled = run_encoder(engine, texts, lambda hidden, mask: pool(hidden, mask).float().cpu().numpy())
    return np.stack([mean_of_windows(pooled, windows) for windows in texts.inputs])


def mean_of_windows(embeddings: Mapping[Ids, Floats], windows: Windows) -> Floats:
    """Compute the embedding of one text from its windows (consecutive pieces of the text).

    The embedding is the mean of the windows' embeddings, weighted by their numbers of tokens.

    Args:
        embeddings: A dict from each window to its (D,) embedding; a window is a tuple of token ids.
        windows: The windows of the text.

    Returns:
        (D,) embedding of the whole text.
    """
    if len(windows) == 1:
        return embeddings[windows[0]]
    weights = [len(ids) - 2 for ids in windows]
    return np.average([embeddings[ids] for ids in windows], axis=0, weights=weights).astype(np.float32)


def run_encoder(
    engine: Engine,
    texts: Tokenized,
    reduce: Callable[[Tensor, Tensor], Iterable[Reduced]],
    last_layers: int = 1,
) -> dict[Ids, Reduced]:
    """Run the encoder on the windows of tokenized texts.

    A window is a whole text or a piece of a long text. Equal windows are encoded only once. The batches do
    not depend on the order of the texts.

    Args:
        engine: The encoder.
        texts: n tokenized texts, each with one or more windows.
        reduce: A function that computes one result for each window in a batch, such as its embedding. It
            takes (B, L, N * D) hidden states: B windows of L tokens, hidden size D, with the states of the
            last N layers joined along the last axis. It also takes a (B, L) mask, true for tokens that are
            not padding.
        last_layers: The number N of layers, counted from the last layer, whose hidden states `reduce` takes.

    Returns:
        A dict from each window (a tuple of token ids) to its result.
    """
    unique = sorted({ids for windows in texts.inputs for ids in windows}, key=lambda ids: (len(ids), ids))
    reduced: dict[Ids, Reduced] = {}
    with torch.inference_mode():
        for rows in batch_slices(unique, engine.batch_tokens):
            tokens, mask = (tensor.to(engine.device) for tensor in pad(unique[rows]))
            reduced.update(zip(unique[rows], reduce(engine(tokens, mask, last_layers), mask), strict=True))
    return reduced


def batch_slices(sorted_ids: Sequence[Sequence[int]], batch_tokens: int) -> Iterator[slice]:
    """Split texts that are sorted by length into batches with a limited number of tokens.

    Args:
        sorted_ids: The token ids of n texts, from the shortest text to the longest.
        batch_tokens: Largest number of tokens in a batch, padding included. A text with more
            tokens than that is alone in its batch.

    Yields:
        For each batch, a slice: the part of `sorted_ids` that holds the texts of the batch.
    """
    start = 0
    for end, tokens in enumerate(sorted_ids):  # `tokens` is the longest so far
        if end > start and (end + 1 - start) * len(tokens) > batch_tokens:
            yield slice(start, end)
            start = end
    if sorted_ids:
        yield slice(start, len(sorted_ids))


def pad(ids: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Pad the token ids of B texts to the length L of the longest text.

    Returns:
        (B, L) token ids; and a (B, L) bool mask, true for tokens that are not padding.
    """
    lengths = torch.tensor([len(text) for text in ids])
    longest = int(lengths.max())
    tokens = torch.tensor([[*text, *[PAD_ID] * (longest - len(text))] for text in ids])
    return tokens, torch.arange(longest) < lengths[:, None]  # not `tokens != PAD_ID`: that id may be a word
