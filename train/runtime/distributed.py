"""The processes of a training run, communication between them, and sharding with torch's FSDP.

With FSDP, each process stores a part of the weights, gradients and optimizer moments. FSDP is imported inside
the functions that need it, because the import takes about one second. A sharded tensor (DTensor) is
recognized by its method `full_tensor`, which needs no import.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from simllm.errors import InputError

T = TypeVar("T")

# Environment variables of torchrun and srun: rank, number of processes, rank on the machine.
# `accelerate launch` sets those of torchrun.
_LAUNCHERS = (("RANK", "WORLD_SIZE", "LOCAL_RANK"), ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"))


class ReportedError(InputError):
    """Exception for bad input whose message another process prints or has printed."""


@dataclass(frozen=True)
class World:
    """The processes of a run: rank of this one, number of all, and the device that this one uses."""

    rank: int = 0
    size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def is_first(self) -> bool:
        """True if this process has rank 0."""
        return self.rank == 0

    def to_device(self, tensor: Tensor) -> Tensor:
        """Copy a tensor to this process's device; a GPU need not first finish what it computes."""
        if self.device.type == "cuda" and tensor.device.type == "cpu":
            tensor = tensor.pin_memory()
        return tensor.to(self.device, non_blocking=True)

    def first_then_others(self, work: Callable[[], T]) -> T:
        """Call a function in the first process, then in the others, which can reuse the files of the first.

        If it raises InputError in the first process, all processes raise ReportedError.
        """
        if self.is_first:
            return self.in_all_processes(work)
        self.in_all_processes(lambda: None)
        return work()

    def in_all_processes(self, work: Callable[[], T]) -> T:
        """Call a function in all processes at the same time; if one raises InputError, all raise an error.

        The first process prints its error at once, and all raise ReportedError. If only others failed, they
        raise their own InputError, and the rest ReportedError. The function must not write what another
        process uses.
        """
        failed: InputError | None = None
        try:
            done = work()
        except InputError as error:
            failed = error
            if self.is_first:
                print(f"error: {error}", file=sys.stderr)  # now, because a launcher may end this process
        in_first, in_any = self.sum_values(self.is_first and failed is not None, failed is not None)
        if in_first:
            raise ReportedError(str(failed))
        if failed:
            raise failed
        if in_any:
            raise ReportedError("another process failed")
        return done

    def sum_values(self, *values: float) -> list[float]:
        """Sum each argument over all processes; return one sum for each argument."""
        if self.size == 1:
            return list(values)
        # On the CPU, where Gloo sums it, also in a run on GPUs: NCCL sums on GPUs only.
        tensor = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(tensor)
        return tensor.tolist()

    def sum_tensor(self, tensor: torch.Tensor) -> None:
        """Replace each element of a tensor by its sum over all processes, in place."""
        if self.size > 1:
            dist.all_reduce(tensor)


def _whole_number(name: str) -> int:
    """Read an environment variable of a launcher, which must be set, as a number of at least 0."""
    value = os.environ[name]
    if not (value.isascii() and value.isdecimal()):
        raise InputError(f"{name}={value}: expected a whole number")
    return int(value)


@contextlib.contextmanager
def join_processes() -> Iterator[World]:
    """Open a context in which this process can exchange tensors with the run's other processes.

    torchrun, `accelerate launch` or srun start them and describe them in environment variables. Without
    these, the run has one process. Each process gets one GPU, or the CPU if there is none.
    """
    for engine in ("FSDP", "DEEPSPEED", "MEGATRON_LM"):
        if _accelerate_flag(f"USE_{engine}"):
            instead = "; set `sharding: true` in the configuration" if engine == "FSDP" else ""
            raise InputError(f"accelerate: {engine} is not supported{instead}")
    rank, size, local = 0, 1, 0
    for names in _LAUNCHERS:
        if all(name in os.environ for name in names):
            rank, size, local = (_whole_number(name) for name in names)
            if rank >= size:
                raise InputError(f"{names[0]}={rank}: expected less than {names[1]}={size}")
            break
    use_cpu = not torch.cuda.is_available() or _accelerate_flag("USE_CPU")
    local %= 1 if use_cpu else torch.cuda.device_count()  # a process may see its own GPU only
    if not use_cpu:
        torch.cuda.set_device(local)
        # TF32 for matrix products of float32: up to 8 times as fast, and training needs no more digits.
        torch.set_float32_matmul_precision("high")
        # cuDNN's attention makes a plan for each new shape, in about half a second; texts have many shapes.
        torch.backends.cuda.enable_cudnn_sdp(False)
    if size == 1:
        if _accelerate_flag("USE_CPU") and "MASTER_ADDR" in os.environ and "RANK" not in os.environ:
            raise InputError("`accelerate launch` starts one process only on CPUs; use torchrun")
        yield World(device=torch.device("cpu") if use_cpu else torch.device("cuda", local))
        return
    missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise InputError(f"{size} processes, but {' and '.join(missing)} not set in the environment")
    # accelerate reads torchrun's variables, and srun sets others.
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(local)}
    os.environ.setdefault("OMP_NUM_THREADS", str(torch.get_num_threads()))  # or accelerate changes the number
    from accelerate.state import AcceleratorState, PartialState

    state = PartialState(
        use_cpu,  # accelerate itself would take one process for a run on CPUs
        backend="gloo" if use_cpu else "cpu:gloo,cuda:nccl",
        timeout=timedelta(days=1),  # the others wait while the first prepares the corpus
    )
    try:
        yield World(state.process_index, state.num_processes, state.device)
    finally:
        state.destroy_process_group()
        AcceleratorState._reset_state(reset_partial_state=True)  # for a later run of the same process


def _accelerate_flag(name: str) -> bool:
    """Return whether `accelerate launch` has set the variable `ACCELERATE_…` to true."""
    return os.environ.get(f"ACCELERATE_{name}", "").lower() == "true"


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


@contextlib.contextmanager
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
