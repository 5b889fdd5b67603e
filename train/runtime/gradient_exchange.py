"""The exchange of gradients between the processes, during the last of an update's backward passes."""

# Without `from __future__ import annotations`, because DDP inspects the types of `_sum_bucket`.
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from train.runtime.distributed import World
from train.runtime.fsdp import is_sharded

# Computes one part of the loss of an update (a scalar), and the number of text tokens in that part.
LossPart = Callable[[], tuple[Tensor, int]]


class GradientExchange:
    """Backpropagation that sums a model's gradients over all processes.

    There are three cases:

    - The run has a single process. Every backward pass is an ordinary one, without DDP.
    - The model is sharded. It sums its gradients over all processes by itself, in every backward pass.
    - Otherwise, the model is wrapped in torch's DDP (distributed data parallel) by the library accelerate.
      DDP copies the first process's parameters to all others. The earlier backward passes of an update add up
      gradients within this process. Unlike in plain DDP, the loss may be computed without the model's
      `forward` method, and may depend on only some of the parameters.
    """

    def __init__(self, model: nn.Module, world: World) -> None:
        self.world = world
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.uses_ddp = world.size > 1 and not is_sharded(model)
        if self.uses_ddp:
            from accelerate import Accelerator, DistributedDataParallelKwargs

            options = DistributedDataParallelKwargs(gradient_as_bucket_view=True)
            # The configuration of the run decides precision and compilation, not `accelerate launch`.
            self.accelerator = Accelerator(
                cpu=world.device.type == "cpu",
                mixed_precision="no",
                dynamo_backend="no",
                kwargs_handlers=[options],
            )
            self.ddp = self.accelerator.prepare_model(model)
            assert isinstance(self.ddp, nn.parallel.DistributedDataParallel)  # otherwise nothing is summed
            self.ddp.register_comm_hook(None, _sum_bucket)

    def backward(self, loss: Tensor, is_last: bool) -> None:
        """Backpropagate one term of an update's loss; after the last one, DDP sums over all processes."""
        if self.uses_ddp and is_last:
            # The forward pass of DDP would prepare the exchange, too. But after the first update it also
            # changes the order of summation: a resumed run would end with other weights.
            with self.accelerator.trigger_sync_in_backward(self.ddp):
                _UseAll.apply(loss, *self.parameters).backward()
        else:
            loss.backward()

    def no_loss(self) -> tuple[Tensor, int]:
        """Return the term 0 and a token count of 0, for a process without texts in an update.

        The process must backpropagate it, because the other processes wait for its gradients.
        """
        return torch.zeros((), device=self.world.device, requires_grad=True), 0


class _UseAll(torch.autograd.Function):
    """Identity of a loss that has all parameters as inputs, and adds nothing to their gradients.

    DDP waits until the backward pass has reached every parameter, even those that the loss does not use.
    """

    @staticmethod
    def forward(ctx: Any, loss: Tensor, *parameters: Tensor) -> Tensor:
        ctx.count = len(parameters)
        return loss.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return *gradients, *[None] * ctx.count


def _sum_bucket(_: object, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:  # type: ignore[name-defined]
    """Sum one bucket of gradients over all processes; DDP alone would compute their mean."""
    work = dist.all_reduce(bucket.buffer(), async_op=True)
    return work.get_future().then(lambda done: done.value()[0])
