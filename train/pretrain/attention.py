"""Attention for a batch of texts that lie one after the other; a row attends only to its own text.

`grouped_attention` is for CPUs, `flex_attention_over_texts` for GPUs. Both give the same results.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import groupby

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from simllm.model.network import AttentionFunction, RelativeBias, attention
from train.pretrain.permutation import PermutedBatch, is_visible

MakeAttention = Callable[[PermutedBatch, RelativeBias, float], AttentionFunction]

BLOCK_SIZE = 128  # rows and columns that the kernel computes or skips together


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


def flex_attention_over_texts(
    batch: PermutedBatch, relative_bias: RelativeBias, dropout: float = 0.0
) -> AttentionFunction:
    """Make the attention function of one batch, which must be padded by `pad_streams` to `BLOCK_SIZE`.

    The function is slow unless compiled. It skips each block of the attention matrix whose rows and columns
    belong to different texts. Raises ValueError for any `dropout`.
    """
    if dropout:
        raise ValueError("flex attention does not support dropout of attention weights")
    positions, texts = batch.positions, batch.texts
    visible_originals, turns = batch.visible_originals, batch.prediction_turns
    longest = relative_bias.longest
    distances = torch.arange(1 - longest, longest, device=positions.device)
    # One entry per distance instead of one per bucket: the backward pass adds fewer gradients to
    # the same entry, which is faster.
    by_distance = relative_bias.table(relative_bias.bucket(distances)).T.contiguous()  # (H, 2 L - 1)

    def add_bias(score: Tensor, b: Tensor, h: Tensor, row: Tensor, column: Tensor) -> Tensor:
        return score + by_distance[h, positions[column] - positions[row] + (longest - 1)]

    def may_attend(b: Tensor, h: Tensor, row: Tensor, column: Tensor) -> Tensor:
        return (texts[row] == texts[column]) & is_visible(visible_originals[row], turns[column])

    mask = _block_mask(texts, len(turns), may_attend)
    return partial(flex_attention, score_mod=add_bias, block_mask=mask)


def _block_mask(texts: Tensor, columns: int, may_attend: Callable[..., Tensor]) -> BlockMask:
    """Make the mask of the blocks to compute: `columns` is C, `texts` is (T,) and ascends within each stream.

    `may_attend` is a `mask_mod` of FlexAttention: whether a row attends to a column.
    """
    rows = texts.unflatten(0, (-1, BLOCK_SIZE))
    first, last = rows[:, 0], rows[:, -1]
    blocks = columns // BLOCK_SIZE
    # The indices of texts ascend, so that two blocks share a text only if their ranges overlap.
    overlap = (first[:, None] <= last[:blocks]) & (last[:, None] >= first[:blocks])
    return BlockMask.from_kv_blocks(
        overlap.sum(1, dtype=torch.int32)[None, None],
        overlap.int().argsort(dim=1, descending=True, stable=True).int()[None, None],
        BLOCK_SIZE=BLOCK_SIZE,
        mask_mod=may_attend,
        seq_lengths=(len(texts), columns),
    )
