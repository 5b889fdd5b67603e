"""Who attends to whom among the rows of many texts: two ways to compute the same.

`by_length` attends within groups of texts of equal length: no padding, works everywhere,
made for CPUs. `flexible` is one compiled kernel over all rows that skips what lies between
the texts: made for GPUs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import groupby

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from simllm.model.encoder import AttentionFunction, RelativeBias, attention
from train.pretrain.permutation import Permuted, visible

Mixing = Callable[[Permuted, RelativeBias, float], AttentionFunction]

BLOCK = 128  # rows and columns that the kernel computes or skips together


def by_length(batch: Permuted, relative_bias: RelativeBias, dropout: float) -> AttentionFunction:
    """Attention within groups of neighbouring texts that have equal n and m."""
    groups = [(sum(1 for _ in texts), *shape) for shape, texts in groupby(map(tuple, batch.shape.tolist()))]

    def split(x: Tensor, dim: int) -> list[Tensor]:
        """Columns (…, C, …) -> (…, texts, C of a text, …) for each group; rows with both streams."""
        content, queries = x.tensor_split([len(batch.turns)], dim)
        streams = [(content, [t * (n + m) for t, n, m in groups])]
        if queries.shape[dim]:
            streams.append((queries, [t * m for t, _, m in groups]))
        parts = zip(*(stream.split(sizes, dim) for stream, sizes in streams), strict=True)
        return [
            torch.cat([rows.unflatten(dim, (texts, -1)) for rows in part], dim + 1)
            for part, (texts, _, _) in zip(parts, groups, strict=True)
        ]

    biases = []  # (H, texts, R, C) each
    for positions, knows, turns in zip(
        *(split(x, 0) for x in (batch.positions, batch.knows, batch.turns)), strict=True
    ):
        bias = relative_bias(positions, positions[:, : turns.shape[1]]).transpose(0, 1)
        hidden = ~visible(knows[0, :, None], turns[0])  # the same in all texts of a group
        biases.append(bias.masked_fill(hidden, torch.finfo(bias.dtype).min))

    def mix(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        contents, queries = [], []
        for q_, k_, v_, bias in zip(split(q[0], 1), split(k[0], 1), split(v[0], 1), biases, strict=True):
            mixed = attention(q_, k_, v_, bias, dropout)  # (H, texts, R, D / H)
            contents.append(mixed[:, :, : bias.shape[-1]].flatten(1, 2))
            queries.append(mixed[:, :, bias.shape[-1] :].flatten(1, 2))
        return torch.cat(contents + queries, 1)[None]

    return mix


def flexible(batch: Permuted, relative_bias: RelativeBias, dropout: float = 0.0) -> AttentionFunction:
    """FlexAttention over all rows; only blocks of rows and columns that share a text are computed.

    Wants both streams filled up to whole blocks (`train.pretrain.permutation.fill_up`), knows no dropout
    of attention weights, and is slow unless compiled.
    """
    if dropout:
        raise ValueError("flexible attention knows no dropout of attention weights")
    positions, texts, knows, turns = batch.positions, batch.texts, batch.knows, batch.turns
    longest = relative_bias.longest
    distances = torch.arange(1 - longest, longest, device=positions.device)
    # One entry a distance instead of one a bucket: in the backward pass, that many fewer
    # additions meet in one place.
    by_distance = relative_bias.table(relative_bias.bucket(distances)).T.contiguous()  # (H, 2 L - 1)

    def add_bias(score: Tensor, b: Tensor, h: Tensor, row: Tensor, column: Tensor) -> Tensor:
        return score + by_distance[h, positions[column] - positions[row] + (longest - 1)]

    def may_attend(b: Tensor, h: Tensor, row: Tensor, column: Tensor) -> Tensor:
        return (texts[row] == texts[column]) & visible(knows[row], turns[column])

    mask = _block_mask(texts, len(turns), may_attend)
    return partial(flex_attention, score_mod=add_bias, block_mask=mask)


def _block_mask(texts: Tensor, columns: int, may_attend: Callable[..., Tensor]) -> BlockMask:
    """The blocks whose ranges of texts overlap; texts ascend within either stream."""
    rows = texts.unflatten(0, (-1, BLOCK))
    first, last = rows[:, 0], rows[:, -1]
    blocks = columns // BLOCK
    overlap = (first[:, None] <= last[:blocks]) & (last[:, None] >= first[:blocks])
    return BlockMask.from_kv_blocks(
        overlap.sum(1, dtype=torch.int32)[None, None],
        overlap.int().argsort(dim=1, descending=True, stable=True).int()[None, None],
        BLOCK_SIZE=BLOCK,
        mask_mod=may_attend,
        seq_lengths=(len(texts), columns),
    )
