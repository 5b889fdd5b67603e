"""Linear layers that are fast on a CPU, because the library oneDNN multiplies their matrices.

On a CPU, PyTorch multiplies float32 matrices with the library MKL. MKL is slow on CPUs that are not from
Intel. MKL also packs the weights (reorders them in memory) again for every product. This module uses oneDNN
instead, another library that comes with PyTorch, and packs the weights only once. If oneDNN does not work on
a machine, the linear layers stay unchanged.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor, nn

from simllm.model.encoder import Layer
from simllm.model.token_batches import CPU_BATCH


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
