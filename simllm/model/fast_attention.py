"""Attention as two matrix products and a softmax, which is fast for short texts in bfloat16 on a CPU.

The exports to ONNX use this form of attention, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

_LONG_ROW = 64  # rows with at least this many attention scores use PyTorch's softmax


def _softmax(scores: Tensor) -> Tensor:
    return scores.softmax(-1)


def matmul_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor,
    dropout: float,
    softmax: Callable[[Tensor], Tensor] = _softmax,
) -> Tensor:
    """Compute attention as two matrix products and a softmax.

    Args:
        q: (B, H, R, D / H) queries: B texts, H heads, R query positions, hidden size D.
        k: (B, H, C, D / H) keys; C is the number of key positions.
        v: (B, H, C, D / H) values.
        bias: (B or 1, H, R, C) numbers that are added to the attention scores.
        dropout: Not used; it is here because `simllm.model.encoder.attention` has this argument.
        softmax: The function that computes the softmax over the last dimension.

    Returns:
        (B, H, R, D / H) weighted sums of the values.
    """
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    scores = torch.matmul(q, k.transpose(-1, -2)).mul_(1 / math.sqrt(q.shape[-1])).add_(bias)
    return torch.matmul(softmax(scores), v)


def short_softmax(scores: Tensor) -> Tensor:
    """Compute the softmax over the last dimension, faster than PyTorch for short rows.

    A row is the C numbers along the last dimension. PyTorch's softmax is slow on a CPU in bfloat16, and also
    in float32 if rows have fewer than 16 numbers. The number C decides how the softmax is computed:

    - Up to 63: in float32. Rows with fewer than 16 numbers are padded to 16.
    - 64 or more: in bfloat16, because float32 would need too much memory.

    Args:
        scores: (..., C) bfloat16 numbers.

    Returns:
        (..., C) bfloat16 softmax.
    """
    columns = scores.shape[-1]
    if columns >= _LONG_ROW:
        return scores.softmax(-1)
    padded = F.pad(scores, (0, max(0, 16 - columns)), value=torch.finfo(scores.dtype).min)
    return padded.float().softmax(-1)[..., :columns].to(scores.dtype)


# For short texts in bfloat16, this function takes half the time of PyTorch's `scaled_dot_product_attention`.
fast_attention = partial(matmul_attention, softmax=short_softmax)
