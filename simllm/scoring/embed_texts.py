"""Embedding of many tokenized texts.

Equal texts are encoded only once. The texts are sorted by length and encoded in batches, each with a limited
number of tokens. The results are returned in the order of the input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from simllm.array_types import Floats32
from simllm.model.exact_and_fast_mode import Engine
from simllm.model.token_batches import batch_slices, pad
from simllm.scoring.token_windows import Ids, Tokenized, Windows

Reduced = TypeVar("Reduced")


def embed(engine: Engine, texts: Tokenized, pool: Callable[[Tensor, Tensor], Tensor]) -> Floats32:
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


def mean_of_windows(embeddings: Mapping[Ids, Floats32], windows: Windows) -> Floats32:
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
    """Run the encoder on the windows of tokenized texts, and compute one result for each window.

    A window is a whole text or a piece of a long text. Equal windows are encoded only once. All windows are
    sorted before they are divided into batches, so the order of the texts does not matter.

    Args:
        engine: The encoder.
        texts: The tokenized texts, each with one or more windows.
        reduce: A function that computes the results for a batch of B windows, such as their embeddings. Its
            first argument is (B, L, N * D) hidden states: L tokens in each window, hidden size D, and the
            states of the last N layers, joined along the last axis. Its second argument is a (B, L) mask,
            true for tokens that are not padding.
        last_layers: The number N of layers in the shape above. With 1, only the last layer's states are used.

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
