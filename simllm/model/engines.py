"""The torch device on which the metric runs: a GPU if there is one, or the device that the user names."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from simllm.errors import InputError
from simllm.model.batches import CPU_BATCH, largest_batch
from simllm.model.encoder import Encoder, Layer, attention


def default_device() -> str:
    """Return the name of the default torch device: "cuda" if there is a CUDA GPU, otherwise "cpu"."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def usable_device(device: str) -> str:
    """Return the name of a torch device; raise InputError if this machine cannot compute on it."""
    try:
        torch.zeros(1, device=device).cpu()
    except (AssertionError, NotImplementedError, RuntimeError, TypeError, ImportError) as error:
        reason = str(error).partition("\n")[0].partition(". ")[0] or type(error).__name__
        usable = "cpu or cuda" if torch.cuda.is_available() else "cpu"
        raise InputError(f"device {device!r}: cannot be used ({reason}); expected {usable}") from None
    return device


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


def packed_layers(module: nn.Module, dtype: torch.dtype) -> dict[int, nn.Module]:
    """Make fast replacements for the linear layers of a network on a CPU.

    In a feed-forward network, the replacement of the first linear layer also applies the activation, which
    saves time. The activation itself is replaced by a layer that does nothing.

    Args:
        module: The network.
        dtype: The number type of the replacements: float32 or bfloat16.

    Returns:
        A dict from the `id` of each replaced layer to its replacement. With this dict as its argument `memo`,
        `copy.deepcopy` makes a copy of the network with the replacements. The dict is empty if the network is
        not on a CPU, or if the library oneDNN, which the replacements use, does not work on this machine.
    """
    if next(module.parameters()).device.type != "cpu" or not can_pack(dtype):
        return {}
    parts = list(module.modules())
    copies: dict[int, nn.Module] = {
        id(part): PackedLinear(part, dtype) for part in parts if isinstance(part, nn.Linear)
    }
    for layer in (part for part in parts if isinstance(part, Layer)):
        copies[id(layer.up)] = PackedLinear(layer.up, dtype, "gelu")
        copies[id(layer.activation)] = nn.Identity()
    return copies


@cache
def can_pack(dtype: torch.dtype) -> bool:
    """Return whether `PackedLinear` works on this machine with numbers of type `dtype`.

    `PackedLinear` is a linear layer that is faster on a CPU. It uses private operators of PyTorch, which some
    CPUs and versions lack.
    """
    values = torch.arange(16 * 32, dtype=torch.float32).reshape(16, 32) / 512
    with torch.random.fork_rng(devices=[]):  # random initial weights must not change the user's random state
        linear = nn.Linear(32, 16)
    linear.load_state_dict({"weight": values, "bias": values[:, 0].clone()})
    try:
        with torch.inference_mode():
            product = PackedLinear(linear, dtype)(values.to(dtype)).float()
            return torch.allclose(product, linear(values), rtol=0.02)
    except Exception:  # a missing or changed operator may raise anything
        return False


class PackedLinear(nn.Module):
    """Linear layer for inference on a CPU; its weight is stored in the memory layout that oneDNN prefers.

    The layer can include an activation. This is faster than a second layer that applies the activation.
    """

    def __init__(self, linear: nn.Linear, dtype: torch.dtype, activation: str = "none") -> None:
        """Pack the weight of a linear layer: store it in the memory layout that the library oneDNN prefers.

        Args:
            linear: The linear layer.
            dtype: The type of the packed numbers.
            activation: The function that is applied to the outputs: `none` or `gelu`.
        """
        super().__init__()
        self.activation = activation
        weight = linear.weight.detach().to(dtype)
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight, CPU_BATCH)
        self.bias = linear.bias.detach().to(dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer to a tensor of shape (..., number of inputs); return (..., number of outputs)."""
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, self.activation, [], "none")


Module = TypeVar("Module", bound=nn.Module)

# plain: the encoder itself, not a copy, so that the weights may change in training
# exact: a copy in float32, packed for the CPU; fast: a copy in bfloat16, packed for the CPU
MODES = {"plain": torch.float32, "exact": torch.float32, "fast": torch.bfloat16}


@dataclass(frozen=True)
class Engine:
    """An encoder that is ready for scoring, together with the attention function that it uses.

    Attributes:
        encoder: The encoder.
        attention: The function that computes the encoder's attention.
    """

    encoder: Encoder
    attention: Callable[..., Tensor] = attention

    @property
    def device(self) -> torch.device:
        """The torch device that holds the encoder."""
        return self.encoder.device

    @property
    def batch_tokens(self) -> int:
        """Largest number of tokens in a batch, padding included; it is smaller on a CPU than on a GPU."""
        return largest_batch(self.device)

    def __call__(self, tokens: Tensor, mask: Tensor, last_layers: int = 1) -> Tensor:
        """Compute the encoder's hidden states for B texts of L tokens, padding included.

        Args:
            tokens: (B, L) token ids.
            mask: (B, L) bool, true for tokens that are not padding.
            last_layers: Number N of layers whose hidden states are returned, counted from the last layer.

        Returns:
            (B, L, N D) hidden states; D is the hidden size. The states of the N layers are side by side, and
            those of the last layer come last.
        """
        return self.encoder(tokens, mask, self.attention, last_layers)


def make_engine(encoder: Encoder, mode: str) -> Engine:
    """Prepare an encoder for computing similarity scores, on the device that holds it.

    Args:
        encoder: The encoder.
        mode: `exact` uses a float32 copy of the encoder, and `fast` a bfloat16 copy. `plain` uses the encoder
            itself: if training changes its weights, later scores use the new weights.

    Returns:
        An `Engine` with the encoder or its copy, and with an attention function. In mode `fast` on a CPU, the
        attention function is `fast_attention`, which is faster for short texts in bfloat16. In all other
        cases, it is `simllm.model.encoder.attention`.

    Raises:
        InputError: The mode is unknown.
    """
    if mode not in MODES:
        raise InputError(f"mode {mode!r}: expected one of {', '.join(MODES)}")
    is_fast_cpu = mode == "fast" and encoder.device.type == "cpu"
    return Engine(prepare_module(encoder, mode), fast_attention if is_fast_cpu else attention)


def prepare_module(module: Module, mode: str) -> Module:
    """Prepare a network for inference, on the device that holds it.

    Args:
        module: The network.
        mode: `plain` (no change), `exact` (a float32 copy) or `fast` (a bfloat16 copy).

    Returns:
        In mode `plain` the network itself, otherwise a copy. On a CPU, the weights of the copy's linear
        layers are packed: stored in the memory layout that the library oneDNN prefers. The first
        linear layer of each feed-forward network also applies the activation, which saves time. If oneDNN
        does not work on this machine, the copy keeps PyTorch's layers.
    """
    if mode == "plain":
        return module
    dtype = MODES[mode]
    return copy.deepcopy(module, packed_layers(module, dtype)).to(dtype)
