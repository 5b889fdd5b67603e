"""Attention on a CPU for a batch of texts that lie one after the other; a row attends only to its own text.

`gpu_attention.py` does the same on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

import torch
from torch import Tensor

from simllm.model.network import AttentionFunction, RelativeBias, attention
from train.pretrain.permutation import PermutedBatch, is_visible

MakeAttention = Callable[[PermutedBatch, RelativeBias, float], AttentionFunction]


def grouped_attention(batch: PermutedBatch, relative_bias: RelativeBias, dropout: float) -> AttentionFunction:
    """Make the attention function of one batch, without padding.

    Consecutive texts of the same shape are computed together. `dropout` is that of attention weights.
    """
    # (texts, n tokens, m predicted tokens) of each group of texts with equal shape.
    groups = [(sum(1 for _ in texts), *shape) for shape, texts in groupby(map(tuple, batch.shape.tolist()))]

    def split(x: Tensor, dim: int) -> list[Tensor]:
        """Split the rows along `dim` into a tensor for each group, with the dimensions (texts, rows of a
        text).

        A text's rows are its content stream and then its query stream; some tensors have no query streams.
        """
        content, queries = x.tensor_split([len(batch.prediction_turns)], dim)
        streams = [(content, [t * (n + m) for t, n, m in groups])]
        if queries.shape[dim]:
            streams.append((queries, [t * m for t, _, m in groups]))
        parts = zip(*(stream.split(sizes, dim) for stream, sizes in streams), strict=True)
        return [
            torch.cat([rows.unflatten(dim, (texts, -1)) for rows in part], dim + 1)
            for part, (texts, _, _) in zip(parts, groups, strict=True)
        ]

    # (H, texts, R, C) each.
    biases = []
    for positions, visible_originals, turns in zip(
        *(split(x, 0) for x in (batch.positions, batch.visible_originals, batch.prediction_turns)),
        strict=True,
    ):
        bias = relative_bias(positions, positions[:, : turns.shape[1]]).transpose(0, 1)
        # Equal for all texts of a group.
        hidden = ~is_visible(visible_originals[0, :, None], turns[0])
        biases.append(bias.masked_fill(hidden, torch.finfo(bias.dtype).min))

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        contents, queries = [], []
        for q_, k_, v_, bias in zip(split(q[0], 1), split(k[0], 1), split(v[0], 1), biases, strict=True):
            mixed = attention(q_, k_, v_, bias, dropout)  # (H, texts, R, D / H)
            contents.append(mixed[:, :, : bias.shape[-1]].flatten(1, 2))
            queries.append(mixed[:, :, bias.shape[-1] :].flatten(1, 2))
        return torch.cat(contents + queries, 1)[None]

    return attend
