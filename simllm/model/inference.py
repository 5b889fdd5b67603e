"""The encoder with faster kernels for scoring.

On a CPU, PyTorch computes float32 products with MKL. MKL is slow on processors of other makers,
and packs the weights again for every product. Here the weights are packed once, for oneDNN,
which comes with PyTorch. Where oneDNN does not work, the linear layers are not changed.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import torch
from torch import Tensor, nn

from simllm.errors import InputError
from simllm.model.encoder import Encoder, attention

Module = TypeVar("Module", bound=nn.Module)

# plain: the encoder itself, not a copy, so that the weights may change in training
# exact: a copy in float32, packed for the CPU; fast: a copy in bfloat16, packed for the CPU
MODES = {"plain": torch.float32, "exact": torch.float32, "fast": torch.bfloat16}

_CPU_BATCH, _GPU_BATCH = 1024, 65_536  # tokens in a batch; more do not fit into a CPU's caches


@dataclass(frozen=True)
class Engine:
    """An encoder that is ready for scoring, with its attention and its batch size."""

    encoder: Encoder
    attention: Callable[..., Tensor] = attention

    @property
    def device(self) -> torch.device:
        """The device of the encoder."""
        return self.encoder.device

    @property
    def batch_tokens(self) -> int:
        """Largest number of tokens in a batch."""
        return _CPU_BATCH if self.device.type == "cpu" else _GPU_BATCH

    def __call__(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Encode (B, L) token ids with a (B, L) mask; return (B, L, D) states."""
        return self.encoder(tokens, mask, self.attention)


def make_engine(encoder: Encoder, mode: str) -> Engine:
    """Prepare an encoder for scoring on its device.

    Args:
        encoder: The encoder.
        mode: `exact`, `fast` or `plain` (see `MODES`).

    Raises:
        InputError: The mode is unknown.
    """
    if mode not in MODES:
        raise InputError(f"mode {mode!r}: expected one of {', '.join(MODES)}")
    is_fast_cpu = mode == "fast" and encoder.device.type == "cpu"
    return Engine(prepare_module(encoder, mode), matmul_attention if is_fast_cpu else attention)


def prepare_module(module: Module, mode: str) -> Module:
    """Prepare a module for a mode: return it unchanged if plain, else a copy in the type of the mode.

    On a CPU the linear layers of the copy are packed for oneDNN, if oneDNN works.
    """
    if mode == "plain":
        return module
    dtype = MODES[mode]
    on_cpu = next(module.parameters()).device.type == "cpu"
    linear = [part for part in module.modules() if isinstance(part, nn.Linear)]
    copies = {id(part): PackedLinear(part, dtype) for part in linear if on_cpu and can_pack(dtype)}
    return copy.deepcopy(module, copies).to(dtype)


@cache
def can_pack(dtype: torch.dtype) -> bool:
    """Return whether `PackedLinear` works; its operators are private to PyTorch and some CPUs lack them."""
    values = torch.arange(16 * 32, dtype=torch.float32).reshape(16, 32) / 512
    with torch.random.fork_rng(devices=[]):  # initial weights are drawn from the user's random state
        linear = nn.Linear(32, 16)
    linear.load_state_dict({"weight": values, "bias": values[:, 0].clone()})
    try:
        with torch.inference_mode():
            product = PackedLinear(linear, dtype)(values.to(dtype)).float()
            return torch.allclose(product, linear(values), rtol=0.02)
    except Exception:  # a missing or changed operator may raise anything
        return False


class PackedLinear(nn.Module):
    """Linear layer for inference, with its weight in the fastest layout of oneDNN."""

    def __init__(self, linear: nn.Linear, dtype: torch.dtype) -> None:
        super().__init__()
        weight = linear.weight.detach().to(dtype)
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight, _CPU_BATCH)
        self.bias = linear.bias.detach().to(dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., D) to (..., D')."""
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")


def matmul_attention(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, dropout: float) -> Tensor:
    """Compute attention as two matrix products: for short texts in bfloat16, twice as fast as SDPA."""
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    scores = torch.matmul(q, k.transpose(-1, -2)).mul_(1 / math.sqrt(q.shape[-1])).add_(bias)
    return torch.matmul(scores.softmax(-1), v)
