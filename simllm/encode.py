"""Texts to embeddings: deduplicate, sort, token-budget batches, scatter back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from simllm.checkpoint import Checkpoint
from simllm.pooling import named
from simllm.tokenizer import PAD_ID

_EMPTY = 2  # tokens of an empty text: <s> and </s>


@dataclass(frozen=True)
class Encoded:
    """n texts encoded, in input order."""

    embeddings: NDArray[np.float32]  # (n, d)
    empty: NDArray[np.bool_]  # (n,) nothing is left of the text after cleaning
    truncated: int  # texts cut at the model's longest input
    deduplicated: int  # texts that were encoded as another one's copy


def encode(checkpoint: Checkpoint, texts: Sequence[str], pooling: str, batch_tokens: int = 4096) -> Encoded:
    """Embed `texts`. What is computed depends on the set of texts only, not on their order."""
    pool, limit = named(pooling), checkpoint.encoder.config.max_length
    whole = checkpoint.tokenizer.encode(texts)
    ids = [tuple(checkpoint.tokenizer.cut(tokens, limit)) for tokens in whole]
    unique = sorted(set(ids), key=lambda tokens: (len(tokens), tokens))
    device = checkpoint.encoder.device
    embeddings = np.empty((len(unique), checkpoint.encoder.config.hidden_size), np.float32)
    with torch.inference_mode():
        for rows in _batches(unique, batch_tokens):
            batch, mask = padded(unique[rows])
            batch, mask = batch.to(device), mask.to(device)
            embeddings[rows] = pool(checkpoint.encoder(batch, mask), mask).cpu().numpy()
    place = {tokens: row for row, tokens in enumerate(unique)}
    return Encoded(
        embeddings=embeddings[[place[tokens] for tokens in ids]],
        empty=np.array([len(tokens) == _EMPTY for tokens in ids], bool),
        truncated=sum(len(tokens) > limit for tokens in whole),
        deduplicated=len(ids) - len(unique),
    )


def _batches(sorted_ids: list[tuple[int, ...]], batch_tokens: int) -> Iterator[slice]:
    """Neighbours of about one length, at most `batch_tokens` tokens together (or one text)."""
    start = 0
    for end, tokens in enumerate(sorted_ids):  # the longest so far, since they are sorted
        if end > start and (end + 1 - start) * len(tokens) > batch_tokens:
            yield slice(start, end)
            start = end
    if sorted_ids:
        yield slice(start, len(sorted_ids))


def padded(ids: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """(B, L) token ids, padded to the longest, and the (B, L) mask of what is not padding."""
    longest = max(map(len, ids))
    tokens = torch.tensor([[*text, *[PAD_ID] * (longest - len(text))] for text in ids])
    return tokens, tokens != PAD_ID
