"""Several processes that train as one, started by srun or torchrun; alone, nothing happens."""

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

# Where srun and torchrun say who a process is: rank, number of processes, rank on its machine.
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"),
)


class Failed(InputError):  # noqa: N818 (it has been said already)
    """Bad input; the first process has printed the line that says so."""


@dataclass(frozen=True)
class World:
    """One of `size` processes, each with a device of its own."""

    rank: int = 0
    size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def first(self) -> bool:
        """Whether this process writes and speaks for all."""
        return self.rank == 0

    def autocast(self, precision: str) -> torch.autocast:
        """Matrix products in this precision, over float32 weights."""
        return torch.autocast(self.device.type, PRECISIONS[precision], enabled=precision != "fp32")

    def first_does(self, work: Callable[[], T]) -> T:
        """Do `work` in the first process, then in the others, which find it done.

        What is wrong with the input is then wrong for all of them: Failed is raised in each.
        """
        failed: InputError | None = None
        if self.first:
            try:
                done = work()
            except InputError as error:
                failed = error
                print(f"error: {error}", file=sys.stderr)  # before a launcher can end this process
        if self.total(failed is not None) != [0]:
            raise Failed(str(failed))
        return done if self.first else work()

    def total(self, *values: float) -> list[float]:
        """The sums of each of the values over all processes."""
        if self.size == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(tensor)
        return tensor.tolist()

    def add(self, tensor: torch.Tensor) -> None:
        """Replace a tensor by its sum over all processes."""
        if self.size > 1:
            dist.all_reduce(tensor)

    def add_gradients(self, model: nn.Module) -> None:
        """Sum the gradients over all processes: one message an update."""
        if self.size == 1:
            return
        parameters = [p for p in model.parameters() if p.requires_grad]
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        for parameter, part in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
            parameter.grad = part.view_as(parameter)


@contextlib.contextmanager
def joined() -> Iterator[World]:
    """Join the other processes, where there are any; one GPU each, where there are GPUs.

    Raises InputError where the launcher does not say where the first process is.
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
