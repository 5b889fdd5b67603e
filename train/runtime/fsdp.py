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
    """Shard a model over all processes, in place.

    All processes must then call the model's forward method equally often, because each call collects weights
    from all processes. Each backward pass sums the gradients over all processes.

    Args:
        model: The model.
        layers: The layers of the model. The weights of a layer are collected from all processes shortly
            before the layer is computed.
        world: The processes of the run.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(world.device.type, (world.size,))
    for module in (*layers, model):
        sharded = fully_shard(module, mesh=mesh)
        sharded.set_gradient_divide_factor(1.0)  # sums, not means
        sharded.set_force_sum_reduction_for_comms(True)  # Gloo knows no other reduction


def is_sharded(model: nn.Module) -> bool:
    """Return whether a model is sharded, so that each process stores only a part of its weights."""
    return any(_is_part(parameter) for parameter in model.parameters())


def collect(tensor: Any) -> Tensor:
    """Collect the parts of a sharded tensor from all processes, and return the whole tensor.

    Any other tensor is returned as it is. All processes must call this function.
    """
    return tensor.full_tensor() if _is_part(tensor) else tensor


def distribute_like(tensor: Tensor, example: Any) -> Tensor:
    """Shard a tensor over all processes in the same way as another tensor.

    For example, whole weights from a saved state are sharded like the weights of the model that loads them.

    Args:
        tensor: The whole tensor, with equal values in all processes.
        example: The other tensor, which shows how to shard.

    Returns:
        The sharded tensor; this process stores only a part of it. The tensor is returned unchanged if
        `example` is not sharded or has another shape.
    """
    if not _is_part(example) or tensor.shape != example.shape:
        return tensor
    from torch.distributed.tensor import distribute_tensor

    mesh, placements = example.device_mesh, example.placements
    return distribute_tensor(tensor.to(example.device), mesh, placements, src_data_rank=None)


@contextmanager
def whole(model: nn.Module, optimizer: torch.optim.Optimizer, world: World) -> Iterator[None]:
    """Open a context in which the first process has all weights and optimizer moments of a sharded model.

    The weights and moments are copied to the main memory of the first process. After the context, they are
    sharded again. Nothing happens if the model is not sharded. All processes must open the context.

    Args:
        model: The model.
        optimizer: The optimizer of the model, which has the moments.
        world: The processes of the run.
    """
    if not is_sharded(model):
        yield
        return
    for module in model.modules():
        if reshard := getattr(module, "reshard", None):
            reshard()
    tables = [module._parameters for module in model.modules()] + list(optimizer.state.values())
    parts = [(table, name, value) for table in tables for name, value in table.items()]
    parts = [part for part in parts if _is_part(part[2])]
    try:
        for table, name, value in parts:
            collected = collect(value.detach()).cpu()
            if world.is_first:
                table[name] = nn.Parameter(collected) if isinstance(value, nn.Parameter) else collected
        yield
    finally:
        for table, name, value in parts:
            table[name] = value


def _is_part(tensor: Any) -> bool:
    """Return whether a tensor is sharded, so that this process has only a part of its values."""
    return hasattr(tensor, "full_tensor")
