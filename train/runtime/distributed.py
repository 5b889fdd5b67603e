"""Training in several processes, started by srun or torchrun, or in a single process."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import nn

from simllm.errors import InputError

T = TypeVar("T")

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}  # of matrix products

# Environment variables of torchrun and srun: rank, number of processes, rank on the machine.
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"),
)


class ReportedError(InputError):
    """Bad input that the first process has already printed."""


@dataclass(frozen=True)
class World:
    """The place of this process among the `size` processes of a run, and its device."""

    rank: int = 0
    size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def is_first(self) -> bool:
        """True in the process that writes the files and messages of the run."""
        return self.rank == 0

    def autocast(self, precision: str) -> torch.autocast:
        """Return a context for matrix products in `precision`, a key of `PRECISIONS`."""
        return torch.autocast(self.device.type, PRECISIONS[precision], enabled=precision != "fp32")

    def first_then_others(self, work: Callable[[], T]) -> T:
        """Call `work` in the first process; when it is done, call it in the others.

        The others can reuse the files that the first process wrote.

        Raises:
            ReportedError: In every process, if `work` raised InputError in the first one.
        """
        failed: InputError | None = None
        if self.is_first:
            try:
                done = work()
            except InputError as error:
                failed = error
                print(f"error: {error}", file=sys.stderr)  # before a launcher can end this process
        if self.sum_values(failed is not None) != [0]:
            raise ReportedError(str(failed))
        return done if self.is_first else work()

    def sum_values(self, *values: float) -> list[float]:
        """Return the sum of each value over all processes."""
        if self.size == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(tensor)
        return tensor.tolist()

    def sum_tensor(self, tensor: torch.Tensor) -> None:
        """Replace a tensor by its sum over all processes, in place."""
        if self.size > 1:
            dist.all_reduce(tensor)

    def sum_gradients(self, model: nn.Module) -> None:
        """Sum the gradients over all processes, in one message."""
        if self.size == 1:
            return
        parameters = [p for p in model.parameters() if p.requires_grad]
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        for parameter, part in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
            parameter.grad = part.view_as(parameter)


@contextlib.contextmanager
def join_processes() -> Iterator[World]:
    """Join the process group of srun or torchrun, if there is one; each process gets one GPU.

    Raises:
        InputError: The launcher does not give the address of the first process.
    """
    rank, size, local = 0, 1, 0
    for names in _LAUNCHERS:
        if all(name in os.environ for name in names):
            rank, size, local = (int(os.environ[name]) for name in names)
            break
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", local % torch.cuda.device_count())
        torch.cuda.set_device(device)
    if size == 1:
        yield World(device=device)
        return
    missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise InputError(f"{size} processes, but {' and '.join(missing)} not set in the environment")
    dist.init_process_group(
        "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo",
        rank=rank,
        world_size=size,
        timeout=timedelta(days=1),  # the others wait while the first prepares the corpus
    )
    try:
        yield World(rank, size, device)
    finally:
        dist.destroy_process_group()
