"""The encoder for scoring: the same arithmetic, with faster kernels.

On a CPU, PyTorch hands float32 products to MKL. MKL is slow on processors of other makers,
and packs the weights again for every product. Here the weights are packed once, for oneDNN,
which comes with PyTorch. Where that does not work, the linear layers stay as they are.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn

from simllm.errors import InputError
from simllm.model.encoder import Encoder, attention

# plain: the encoder as it stands, its weights as they are now (they may be in training)
# exact: float32, from a packed copy; fast: bfloat16, from a packed copy
MODES = {"plain": torch.float32, "exact": torch.float32, "fast": torch.bfloat16}

_CPU_BATCH, _GPU_BATCH = 1024, 65_536  # tokens; a CPU's caches hold no more


@dataclass(frozen=True)
class Engine:
    """Runs an encoder, on batches of about `batch_tokens` tokens."""

    encoder: Encoder
    attention: Callable[..., Tensor] = attention

    @property
    def device(self) -> torch.device:
        """The device of the encoder."""
        return self.encoder.device

    @property
    def batch_tokens(self) -> int:
        """Number of tokens in a batch, about."""
        return _CPU_BATCH if self.device.type == "cpu" else _GPU_BATCH

    def __call__(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """(B, L) token ids and mask -> (B, L, D) states."""
        return self.encoder(tokens, mask, self.attention)


def engine(encoder: Encoder, mode: str) -> Engine:
    """Prepare `encoder` to run in a mode, on its device; raise InputError for an unknown mode."""
    if mode not in MODES:
        raise InputError(f"mode {mode!r}: expected one of {', '.join(MODES)}")
    if mode == "plain":
        return Engine(encoder)
    if encoder.device.type == "cpu":
        return Engine(packed(encoder, MODES[mode]), attention if mode == "exact" else products)
    return Engine(copy.deepcopy(encoder).to(MODES[mode]))


def packed(encoder: Encoder, dtype: torch.dtype) -> Encoder:
    """Copy `encoder` in `dtype`, with its linear layers packed for oneDNN where that works."""
    linear = [module for module in encoder.modules() if isinstance(module, nn.Linear)]
    copies = {id(module): PackedLinear(module, dtype) for module in linear if can_pack(dtype)}
    return copy.deepcopy(encoder, copies).to(dtype)


@cache
def can_pack(dtype: torch.dtype) -> bool:
    """Try a small `PackedLinear`: its operators are private to PyTorch, and not every CPU has them."""
    values = torch.arange(16 * 32, dtype=torch.float32).reshape(16, 32) / 512
    linear = nn.Linear(32, 16, device="meta").to_empty(device="cpu")  # takes no random numbers
    linear.load_state_dict({"weight": values, "bias": values[:, 0].clone()})
    try:
        with torch.inference_mode():
            found = PackedLinear(linear, dtype)(values.to(dtype)).float()
            return torch.allclose(found, linear(values), rtol=0.02)
    except Exception:  # whatever a missing or a changed operator raises
        return False


class PackedLinear(nn.Module):
    """A linear layer for inference, its weight in the layout that oneDNN multiplies fastest."""

    def __init__(self, linear: nn.Linear, dtype: torch.dtype) -> None:
        super().__init__()
        weight = linear.weight.detach().to(dtype)
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight, _CPU_BATCH)
        self.bias = linear.bias.detach().to(dtype)

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., D')."""
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")


def products(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, dropout: float) -> Tensor:
    """Attention as two products, which for short texts in bfloat16 is twice as fast as SDPA."""
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    scores = torch.matmul(q, k.transpose(-1, -2)).mul_(1 / math.sqrt(q.shape[-1])).add_(bias)
    return torch.matmul(scores.softmax(-1), v)
