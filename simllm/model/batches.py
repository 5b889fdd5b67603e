"""Batches of tokenized texts: splitting texts into batches of limited size, and padding to equal length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from simllm.model.tokenizer import PAD_ID

CPU_BATCH, GPU_BATCH = 1024, 65_536  # tokens in a batch; more do not fit into a CPU's caches


def largest_batch(device: torch.device) -> int:
    """Return the largest number of tokens in a batch, padding included."""
    return CPU_BATCH if device.type == "cpu" else GPU_BATCH


def batch_slices(sorted_ids: Sequence[Sequence[int]], batch_tokens: int) -> Iterator[slice]:
    """Split texts that are sorted by length, shortest first, into batches of at most `batch_tokens` tokens.

    Padding counts. A text with more tokens than that is alone in its batch.
    """
    start = 0
    for end, tokens in enumerate(sorted_ids):  # `tokens` is the longest so far
        if end > start and (end + 1 - start) * len(tokens) > batch_tokens:
            yield slice(start, end)
            start = end
    if sorted_ids:
        yield slice(start, len(sorted_ids))


def pad(ids: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Pad the token ids of B texts to the longest: (B, L) token ids, and their (B, L) mask."""
    lengths = torch.tensor([len(text) for text in ids])
    longest = int(lengths.max())
    tokens = torch.tensor([[*text, *[PAD_ID] * (longest - len(text))] for text in ids])
    return tokens, torch.arange(longest) < lengths[:, None]  # not `tokens != PAD_ID`: that id may be a word
