"""Attention for a batch of texts that lie one after the other; a token attends only to its own text.

`grouped_attention` is for CPUs. It computes the attention of texts with equal length together, without
padding. `flex_attention_over_texts` is for GPUs. One compiled kernel computes the attention of all texts, but
skips each block of the attention matrix whose rows and columns belong to different texts. The two functions
give the same results.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import groupby

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from simllm.model.encoder import AttentionFunction, RelativeBias, attention
from train.pretrain.permutation import PermutedBatch, is_visible

MakeAttention = Callable[[PermutedBatch, RelativeBias, float], AttentionFunction]

BLOCK_SIZE = 128  # rows and columns that the kernel computes or skips together


def grouped_attention(batch: PermutedBatch, relative_bias: RelativeBias, dropout: float) -> AttentionFunction:
    """Make an attention function for one batch, without padding (for CPUs).

    Consecutive texts with the same number of tokens and the same number of predicted tokens are computed
    together, to save time.

    Args:
        batch: The batch.
        relative_bias: The relative position bias of the encoder.
        dropout: Dropout probability of attention weights.

    Returns:
        A function that computes the attention of this batch from queries, keys and values.
    """
    groups = [(sum(1 for _ in texts), *shape) for shape, texts in groupby(map(tuple, batch.shape.tolist()))]

    def split(x: Tensor, dim: int) -> list[Tensor]:
        """Split a tensor into one tensor for each group of texts.

        The texts of a group are consecutive. They have the same number of tokens, and the same number of
        predicted tokens. The attention of a group is therefore computed at once, without padding.

        Each text has two streams (sequences of rows). A row of the content stream is a token of the text, or
        a placeholder for a predicted token. A row of the query stream predicts one token.

        Args:
            x: The tensor. The rows along dimension `dim` are the content streams of all texts, and then the
                query streams of all texts. Some tensors have no query streams.
            dim: The dimension of the rows.

        Returns:
            A tensor for each group. Two dimensions replace `dim`: the texts of the group, and the rows of
            each text. The rows of a text are its content stream, and then its query stream.
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

    biases = []  # (H, texts, R, C) each
    for positions, visible_originals, turns in zip(
        *(split(x, 0) for x in (batch.positions, batch.visible_originals, batch.prediction_turns)),
        strict=True,
    ):
        bias = relative_bias(positions, positions[:, : turns.shape[1]]).transpose(0, 1)
        hidden = ~is_visible(visible_originals[0, :, None], turns[0])  # equal for all texts of a group
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
    """Make a function that computes the attention of one batch in blocks, for GPUs.

    The texts of the batch stand one after the other, in one long sequence. The attention matrix of this
    sequence is divided into blocks of `BLOCK_SIZE` rows and columns. To save time, the returned function
    skips a block if its rows and its columns belong to different texts. This function is slow unless
    compiled.

    Args:
        batch: The batch, padded by `train.pretrain.permutation.pad_streams` to multiples of `BLOCK_SIZE`
            rows.
        relative_bias: The relative position bias of the encoder.
        dropout: Dropout probability of attention weights; only 0 is supported.

    Raises:
        ValueError: `dropout` is not 0.
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
    """Make the mask that tells FlexAttention which entries of a batch's attention matrix to compute.

    FlexAttention computes the matrix in square blocks. With this mask, it skips a block if its rows and its
    columns belong to different texts.

    The matrix has T rows, those of a `PermutedBatch`. The first rows are the content stream, which has the
    tokens of all texts and a placeholder for each predicted token. The other rows are the query stream, which
    makes the predictions. The columns are the rows of the content stream, because all rows attend only to the
    content stream.

    Args:
        texts: (T,) index of the text to which each row belongs. The indices ascend within the content stream,
            and again within the query stream.
        columns: Number of columns, which is the number of rows of the content stream.
        may_attend: Function that returns whether a row attends to a column: a `mask_mod` of FlexAttention.
    """
    rows = texts.unflatten(0, (-1, BLOCK_SIZE))
    first, last = rows[:, 0], rows[:, -1]
    blocks = columns // BLOCK_SIZE
    overlap = (first[:, None] <= last[:blocks]) & (last[:, None] >= first[:blocks])
    return BlockMask.from_kv_blocks(
        overlap.sum(1, dtype=torch.int32)[None, None],
        overlap.int().argsort(dim=1, descending=True, stable=True).int()[None, None],
        BLOCK_SIZE=BLOCK_SIZE,
        mask_mod=may_attend,
        seq_lengths=(len(texts), columns),
    )
