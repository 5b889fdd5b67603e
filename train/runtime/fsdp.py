"""Sharding with torch's FSDP: each process stores a part of the weights, gradients and optimizer moments.

FSDP is imported inside the functions that need it, because the import takes about one second. A sharded
tensor (DTensor) is recognized by its method `full_tensor`, which needs no import.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from train.runtime.distributed import World


def shard(model: nn.Module, layers: Iterable[nn.Module], world: World) -> None:
    """Shard a model over all processes, in place; the weights of a layer are collected when it is computed.

    All processes must then call the model's forward method equally often, because each call collects weights
    from all of them. Each backward pass sums the gradients over all processes.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(world.device.type, (world.size,))
    for module in (*layers, model):
        sharded = fully_shard(module, mesh=mesh)
        sharded.set_gradient_divide_factor(1.0)  # sums, not means
        sharded.set_force_sum_reduction_for_comms(True)  # Gloo knows no other reduction


def is_sharded(model: nn.Module) -> bool:
    """Return whether this process stores only a part of the model's weights."""
    return any(_is_part(parameter) for parameter in model.parameters())


def collect(tensor: Any) -> Tensor:
    """Return a sharded tensor whole, and any other as it is; all processes must call this function."""
    return tensor.full_tensor() if _is_part(tensor) else tensor


def distribute_like(tensor: Tensor, example: Any) -> Tensor:
    """Shard a whole tensor, equal in all processes, like `example`.

    The tensor is returned unchanged if `example` is not sharded or has another shape.
    """
    if not _is_part(example) or tensor.shape != example.shape:
        return tensor
    from torch.distributed.tensor import distribute_tensor

    # Without a source rank: each process has the values, and none needs to send them.
    mesh, placements = example.device_mesh, example.placements
    return distribute_tensor(tensor.to(example.device), mesh, placements, src_data_rank=None)


@contextmanager
def whole(model: nn.Module, optimizer: torch.optim.Optimizer, world: World) -> Iterator[None]:
    """Open a context in which the first process has a sharded model's weights and moments in main memory.

    Nothing happens if the model is not sharded. All processes must open the context.
    """
    if not is_sharded(model):
        yield
        return
    for module in model.modules():
        # A layer that was just used may still hold its weights whole.
        if reshard := getattr(module, "reshard", None):
            reshard()
    tables = [module._parameters for module in model.modules()] + list(optimizer.state.values())
    parts = [(table, name, value) for table in tables for name, value in table.items()]
    parts = [part for part in parts if _is_part(part[2])]
    try:
        for table, name, value in parts:
            collected = collect(value.detach()).cpu()
            # All processes take part in collecting, but only the first keeps the result.
            if world.is_first:
                table[name] = nn.Parameter(collected) if isinstance(value, nn.Parameter) else collected
        yield
    finally:
        for table, name, value in parts:
            table[name] = value


def _is_part(tensor: Any) -> bool:
    return hasattr(tensor, "full_tensor")
