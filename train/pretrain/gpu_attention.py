"""Attention on a GPU for a batch of texts that lie one after the other: kernels in Triton.

As in FlashAttention-2 (Dao, 2023), a program computes the attention matrix tile by tile and never stores it.
It multiplies float32 in TF32 (Triton's default), as all training on a GPU does. Three things are special:

- A row sees only its own text. So the columns that a tile of rows sees are one range of columns.
- Of a predicted token, a row sees either the original or the slot (see `permutation.py`). So each row has a
  number, and each column an interval: the numbers of the rows that see the column.
- The relative position bias is learned. It is a step function of the distance. Within a row, columns are
  sorted by distance, so the gradient of a step is the difference of two running sums. No program adds to the
  memory of another one: an atomic addition for each score would take longer than everything else.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional as F

from simllm.model.network import AttentionFunction, RelativeBias
from train.pretrain.permutation import PermutedBatch

BLOCK_SIZE = 64  # rows and columns of a tile
WARPS = 4  # of a program
# With 2 stages, a program loads the next tile while it computes; for float32, the shared memory of some GPUs
# is too small.
STAGES = {2: 2, 4: 1}  # by bytes of a number
_LOG2_E, _LN_2 = 1.4426950408889634, tl.constexpr(0.6931471805599453)
_HIDDEN = tl.constexpr(-1e30)  # logit of a column that a row does not see; -inf - -inf would be NaN


def fused_attention(
    batch: PermutedBatch, relative_bias: RelativeBias, dropout: float = 0.0
) -> AttentionFunction:
    """Make the attention function of one batch, after `by_position`, and `pad_streams` to a multiple of
    `BLOCK_SIZE`.
    """
    longest, steps = relative_bias.longest, triton.next_power_of_2(relative_bias.table.num_embeddings)
    distances = torch.arange(1 - longest, longest, device=batch.positions.device)
    buckets = relative_bias.bucket(distances)
    # The steps of the bias, from the lowest distance to the highest, and the first distance of each; there
    # may be fewer than S.
    step_of = torch.cat([buckets[:1] * 0, (buckets.diff() != 0).cumsum(0)])  # (2 L - 1,)
    first = torch.searchsorted(step_of, torch.arange(steps, device=step_of.device))  # (S,)
    bias = relative_bias.table(buckets[first.clamp(max=2 * longest - 2)]).T.float()  # (H, S)
    bounds = _bounds(batch, first + (1 - longest), longest)
    parts = (batch.positions, *_visibility(batch, longest), bounds, step_of)
    layout = [part.int() for part in parts]

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        # Drawn outside of the operator, so that the backward pass gets the same seed.
        seed = torch.randint(2**31 - 1, (1,), device=q.device) if dropout else first[:1]
        rows, width = [x.squeeze(0).transpose(0, 1) for x in (q, k, v)], q.shape[-1]  # (T or C, H, D) each
        padded = max(16, triton.next_power_of_2(width))  # a GPU's matrix products need a power of 2
        if padded != width:
            rows = [F.pad(x, (0, padded - width)) for x in rows]
        mixed, _ = _attention(*rows, bias, layout, seed, width**-0.5, dropout)
        return mixed[..., :width].transpose(0, 1)[None]

    return attend


def _visibility(batch: PermutedBatch, longest: int) -> tuple[Tensor, ...]:
    """Compute which rows see which columns: a row sees the columns whose intervals hold its number.

    Returns the (T,) numbers of the rows, the (C,) starts and widths of the intervals, and the ranges of
    columns of each tile of rows (tiles, 2), and of rows of each tile of columns, in both streams (tiles, 4).
    """
    texts, turns = batch.texts, batch.prediction_turns
    of_columns, of_queries = texts[: len(turns)].contiguous(), texts[len(turns) :].contiguous()
    numbers = texts * longest + batch.visible_originals
    starts = of_columns * longest + turns.clamp(min=0)
    widths = torch.where(turns < 0, -turns, longest - turns.clamp(min=0))
    # The last tile reaches beyond the last column; nothing sees a column with the width 0.
    starts, widths = F.pad(starts, (0, BLOCK_SIZE)), F.pad(widths, (0, BLOCK_SIZE))

    def ranges(of_tiles: Tensor, others: Tensor) -> Tensor:
        """Find the range of `others` that belong to the texts of each tile; both ascend."""
        tiles = of_tiles.unflatten(0, (-1, BLOCK_SIZE))
        first, last = tiles[:, 0].contiguous(), tiles[:, -1].contiguous()
        return torch.stack(
            [torch.searchsorted(others, first), torch.searchsorted(others, last, right=True)], 1
        )

    of_rows = ranges(texts, of_columns)
    rows, queries = ranges(of_columns, of_columns), ranges(of_columns, of_queries) + len(turns)
    return numbers, starts, widths, of_rows, torch.cat([rows, queries], 1)


def _bounds(batch: PermutedBatch, distances: Tensor, longest: int) -> Tensor:
    """Find, for each row and each of (S,) distances, the first column that is so far away: (T, S)."""
    columns = (batch.texts * longest + batch.positions)[: len(batch.prediction_turns)].contiguous()
    # A column that would lie before or after the text gives the text's first column, or the one after it.
    wanted = (batch.positions[:, None] + distances).clamp(0, longest - 1)
    return torch.searchsorted(columns, batch.texts[:, None] * longest + wanted)


@triton.jit
def _logits(scores, bias, row_positions, row_numbers, column_positions, lowest, count):
    """Add the bias to a tile of scores, and hide columns; all arguments have the axes of the tile."""
    scores += tl.load(bias + (column_positions - row_positions))
    # Without a sign, a number below the interval's start becomes a large one: one comparison is enough.
    within = (row_numbers - lowest).to(tl.uint32, bitcast=True) < count.to(tl.uint32, bitcast=True)
    return tl.where(within, scores, _HIDDEN)


@triton.jit
def _kept(seed, rows, columns, head, rate):
    """Draw the factors of a tile's weights for dropout: 0 or 1 / (1 - rate), always the same for a seed."""
    rows, columns = tl.broadcast(rows, columns)
    bits, _, _, _ = tl.philox(tl.load(seed), rows, columns, rows * 0 + head, rows * 0)
    return tl.where(tl.uint_to_uniform_float(bits) >= rate, 1 / (1 - rate), 0.0)


@triton.jit
def _forward(
    q, k, v, bias, positions, numbers, starts, widths, ranges, seed, out, lse, scale, rate, longest, heads,
    D: tl.constexpr, BLOCK: tl.constexpr, DROPOUT: tl.constexpr,
):  # fmt: skip
    """Compute the output of a tile of rows of one head, and the logarithms of the rows' denominators."""
    tile, head = tl.program_id(0), tl.program_id(1)
    bias += head * (2 * longest - 1) + longest - 1
    rows, d = tile * BLOCK + tl.arange(0, BLOCK), tl.arange(0, D)
    at_rows = (rows * heads + head)[:, None] * D + d
    queries = tl.load(q + at_rows)
    row_positions, row_numbers = tl.load(positions + rows)[:, None], tl.load(numbers + rows)[:, None]
    begin, end = tl.load(ranges + 2 * tile), tl.load(ranges + 2 * tile + 1)
    largest = tl.full((BLOCK,), _HIDDEN, tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    mixed = tl.zeros((BLOCK, D), tl.float32)
    for start in range(begin, end, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        # After the range's end, columns of other texts or of `_visibility` follow; the tile's rows see none.
        lowest, count = tl.load(starts + columns)[None, :], tl.load(widths + columns)[None, :]
        column_positions = tl.load(positions + columns)[None, :]
        at_columns = (tl.minimum(columns, end - 1) * heads + head)[:, None] * D + d
        keys = tl.load(k + at_columns)
        scores = tl.dot(queries, tl.trans(keys)) * scale
        logits = _logits(scores, bias, row_positions, row_numbers, column_positions, lowest, count)
        larger = tl.maximum(largest, tl.max(logits, 1))
        weights, shrink = tl.exp2(logits - larger[:, None]), tl.exp2(largest - larger)
        total, largest = total * shrink + tl.sum(weights, 1), larger
        if DROPOUT:
            weights *= _kept(seed, rows[:, None], columns[None, :], head, rate)
        values = tl.load(v + at_columns)
        mixed = tl.dot(weights.to(values.dtype), values, mixed * shrink[:, None])
    total = tl.maximum(total, 1e-30)  # a row of padding may see nothing
    tl.store(out + at_rows, (mixed / total[:, None]).to(out.dtype.element_ty))
    tl.store(lse + rows * heads + head, largest + tl.log2(total))


@triton.jit
def _backward_rows(
    q, k, v, bias, positions, numbers, starts, widths, ranges, bounds, seed, out, lse, to_out,
    to_q, to_bias, deltas, scale, rate, longest, heads,
    D: tl.constexpr, BLOCK: tl.constexpr, STEPS: tl.constexpr,
    DROPOUT: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of a tile of queries of one head, and its part of those of the bias.

    For each step of the bias, the latter is the sum over all smaller distances.
    """
    tile, head = tl.program_id(0), tl.program_id(1)
    bias += head * (2 * longest - 1) + longest - 1
    rows, d = tile * BLOCK + tl.arange(0, BLOCK), tl.arange(0, D)
    at_rows = (rows * heads + head)[:, None] * D + d
    queries, gradients = tl.load(q + at_rows), tl.load(to_out + at_rows)
    delta = tl.sum(gradients.to(tl.float32) * tl.load(out + at_rows).to(tl.float32), 1)
    tl.store(deltas + rows * heads + head, delta)
    denominators = tl.load(lse + rows * heads + head)[:, None]
    row_positions, row_numbers = tl.load(positions + rows)[:, None], tl.load(numbers + rows)[:, None]
    begin, end = tl.load(ranges + 2 * tile), tl.load(ranges + 2 * tile + 1)
    steps = tl.arange(0, STEPS)
    row_bounds, sums = tl.load(bounds + rows[:, None] * STEPS + steps), tl.zeros((BLOCK, STEPS), tl.float32)
    to_queries = tl.zeros((BLOCK, D), tl.float32)
    for start in range(begin, end, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        # After the range's end, columns of other texts or of `_visibility` follow; the tile's rows see none.
        lowest, count = tl.load(starts + columns)[None, :], tl.load(widths + columns)[None, :]
        column_positions = tl.load(positions + columns)[None, :]
        at_columns = (tl.minimum(columns, end - 1) * heads + head)[:, None] * D + d
        keys = tl.load(k + at_columns)
        values = tl.load(v + at_columns)
        scores = tl.dot(queries, tl.trans(keys)) * scale
        logits = _logits(scores, bias, row_positions, row_numbers, column_positions, lowest, count)
        to_weights = tl.dot(gradients, tl.trans(values))
        if DROPOUT:
            to_weights *= _kept(seed, rows[:, None], columns[None, :], head, rate)
        to_logits = tl.exp2(logits - denominators) * (to_weights - delta[:, None])
        to_queries = tl.dot(to_logits.to(keys.dtype), keys, to_queries)
        # A row's sums at the bounds in this tile: nothing before its first column, all beyond its last one.
        running, last = tl.cumsum(to_logits, 1), tl.minimum(row_bounds - start, BLOCK) - 1
        sums += tl.where(last >= 0, tl.gather(running, tl.maximum(last, 0), 1), 0.0)
    tl.store(to_q + at_rows, (to_queries * (scale * _LN_2)).to(to_q.dtype.element_ty))
    tl.store(to_bias + (tile * heads + head) * STEPS + steps, tl.sum(sums, 0))


@triton.jit
def _backward_columns(
    q, k, v, bias, positions, numbers, starts, widths, ranges, seed, lse, to_out, deltas, to_k, to_v,
    scale, rate, longest, heads,
    D: tl.constexpr, BLOCK: tl.constexpr, DROPOUT: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of a tile of keys and values of one head."""
    tile, head = tl.program_id(0), tl.program_id(1)
    bias += head * (2 * longest - 1) + longest - 1
    columns, d = tile * BLOCK + tl.arange(0, BLOCK), tl.arange(0, D)
    at_columns = (columns * heads + head)[:, None] * D + d
    keys, values = tl.load(k + at_columns), tl.load(v + at_columns)
    column_positions = tl.load(positions + columns)[:, None]
    lowest, count = tl.load(starts + columns)[:, None], tl.load(widths + columns)[:, None]
    content_begin, content_end = tl.load(ranges + 4 * tile), tl.load(ranges + 4 * tile + 1)
    query_begin, query_end = tl.load(ranges + 4 * tile + 2), tl.load(ranges + 4 * tile + 3)
    of_content = tl.cdiv(content_end - content_begin, BLOCK)
    to_keys, to_values = tl.zeros((BLOCK, D), tl.float32), tl.zeros((BLOCK, D), tl.float32)
    for number in range(of_content + tl.cdiv(query_end - query_begin, BLOCK)):
        in_content = number < of_content
        start = tl.where(
            in_content, content_begin + number * BLOCK, query_begin + (number - of_content) * BLOCK
        )
        end = tl.where(in_content, content_end, query_end)
        rows = start + tl.arange(0, BLOCK)
        inside, rows = rows < end, tl.minimum(rows, end - 1)
        at_rows = (rows * heads + head)[:, None] * D + d
        row_positions = tl.load(positions + rows)[None, :]
        row_numbers = tl.where(inside, tl.load(numbers + rows), -1)[None, :]  # -1 sees no column
        queries, gradients = tl.load(q + at_rows), tl.load(to_out + at_rows)
        # The tile is transposed: products of its weights with gradients need no other layout in memory.
        scores = tl.dot(keys, tl.trans(queries)) * scale
        logits = _logits(scores, bias, row_positions, row_numbers, column_positions, lowest, count)
        weights = tl.exp2(logits - tl.load(lse + rows * heads + head)[None, :])
        to_weights = tl.dot(values, tl.trans(gradients))
        kept = weights
        if DROPOUT:
            factors = _kept(seed, rows[None, :], columns[:, None], head, rate)
            kept, to_weights = weights * factors, to_weights * factors
        to_logits = weights * (to_weights - tl.load(deltas + rows * heads + head)[None, :])
        to_values = tl.dot(kept.to(gradients.dtype), gradients, to_values)
        to_keys = tl.dot(to_logits.to(queries.dtype), queries, to_keys)
    tl.store(to_k + at_columns, (to_keys * (scale * _LN_2)).to(to_k.dtype.element_ty))
    tl.store(to_v + at_columns, to_values.to(to_v.dtype.element_ty))


@torch.library.custom_op("simllm::attention_within_texts", mutates_args=())
def _attention(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor, layout: list[Tensor], seed: Tensor, scale: float,
    dropout: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Compute the (T, H, D) outputs and the (T, H) logarithms to base 2 of the softmax's denominators."""
    positions, numbers, starts, widths, of_rows, _, _, step_of = layout
    out, lse = q.new_empty(q.shape), q.new_empty(q.shape[:2], dtype=torch.float32)
    _forward[(len(of_rows), q.shape[1])](
        q.contiguous(), k.contiguous(), v.contiguous(), _by_distance(bias, step_of), positions, numbers,
        starts, widths, of_rows, seed, out, lse, **_settings(q, step_of, scale, dropout),
    )  # fmt: skip
    return out, lse


@torch.library.custom_op("simllm::attention_within_texts_backward", mutates_args=())
def _attention_backward(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor, layout: list[Tensor], seed: Tensor, scale: float,
    dropout: float, out: Tensor, lse: Tensor, to_out: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Compute the gradients of q, k, v and the (H, S) bias."""
    q, k, v, to_out = (x.contiguous() for x in (q, k, v, to_out))
    positions, numbers, starts, widths, of_rows, of_columns, bounds, step_of = layout
    to_q, to_k, to_v, delta = (torch.empty_like(x) for x in (q, k, v, lse))
    sums = bias.new_empty(len(of_rows), *bias.shape)
    inputs = (q, k, v, _by_distance(bias, step_of), positions, numbers, starts, widths)
    settings = _settings(q, step_of, scale, dropout)
    _backward_rows[(len(of_rows), q.shape[1])](
        *inputs, of_rows, bounds, seed, out, lse, to_out, to_q, sums, delta, STEPS=bias.shape[1], **settings
    )
    _backward_columns[(len(of_columns), q.shape[1])](
        *inputs, of_columns, seed, lse, to_out, delta, to_k, to_v, **settings
    )
    below = sums.sum(0, dtype=torch.float64)
    return to_q, to_k, to_v, torch.diff(below, append=below[:, -1:]).float()


def _by_distance(bias: Tensor, step_of: Tensor) -> Tensor:
    """Return the (H, 2 L - 1) bias of each distance, in units of log 2, since the kernels use powers of 2."""
    return (bias * _LOG2_E)[:, step_of].contiguous()


def _settings(q: Tensor, step_of: Tensor, scale: float, dropout: float) -> dict[str, Any]:
    """Return the arguments that all kernels have."""
    return {
        "scale": scale * _LOG2_E,
        "rate": dropout,
        "longest": (len(step_of) + 1) // 2,
        "heads": q.shape[1],
        "D": q.shape[2],
        "BLOCK": BLOCK_SIZE,
        "DROPOUT": dropout > 0,
        "num_warps": WARPS,
        "num_stages": STAGES[q.element_size()],
    }


@_attention.register_fake
def _(q: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
    return q.new_empty(q.shape), q.new_empty(q.shape[:2], dtype=torch.float32)


@_attention_backward.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, *others: Any) -> tuple[Tensor, ...]:
    return tuple(x.new_empty(x.shape) for x in (q, k, v, bias))


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    q, k, v, bias, layout, seed, *ctx.settings = inputs
    ctx.save_for_backward(q, k, v, bias, seed, *output, *layout)


def _differentiate(ctx: Any, to_out: Tensor, _: Tensor) -> tuple[Any, ...]:
    q, k, v, bias, seed, out, lse, *layout = ctx.saved_tensors
    gradients = _attention_backward(q, k, v, bias, layout, seed, *ctx.settings, out, lse, to_out)
    return *gradients, [None] * len(layout), None, None, None


_attention.register_autograd(_differentiate, setup_context=_save)
