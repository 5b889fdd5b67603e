"""The exchange of gradients between the processes of a training run.

An update (optimizer step) may have several backward passes. The gradients are exchanged during the last one.
"""

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

    An update (optimizer step) may have several backward passes. There are three cases:

    - The run has a single process. Every backward pass is an ordinary one, without DDP.
    - The model is sharded: each process stores only a part of its weights. Such a model sums its gradients
      over all processes by itself, in every backward pass. DDP is not used.
    - Otherwise, the model is wrapped in torch's DDP (distributed data parallel), which the library accelerate
      sets up. The earlier backward passes add up the gradients within this process. During the last pass,
      DDP sums the gradients over all processes. Unlike in plain DDP, the loss may be computed without the
      model's `forward` method, and may depend on only some of the parameters.

    Args:
        model: The model. If DDP is used, the constructor copies the parameters of the first process to all
            other processes.
        world: The processes of the run.
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
        """Backpropagate one term of the loss of an update (optimizer step), such as the loss on one batch.

        Args:
            loss: The term.
            is_last: Whether this is the last term of this process in the update. With DDP, the gradients are
                then summed over all processes.
        """
        if self.uses_ddp and is_last:
            # The forward pass of DDP would prepare the exchange, too. But after the first update it also
            # changes the order of summation: a resumed run would end with other weights.
            with self.accelerator.trigger_sync_in_backward(self.ddp):
                _UseAll.apply(loss, *self.parameters).backward()
        else:
            loss.backward()

    def no_loss(self) -> tuple[Tensor, int]:
        """Return a loss of 0 and a token count of 0, for a process without texts in an optimizer step.

        The process must backpropagate this loss, because the other processes wait for its gradients.
        """
        return torch.zeros((), device=self.world.device, requires_grad=True), 0


class _UseAll(torch.autograd.Function):
    """A differentiable function of a loss and all parameters, which returns the loss unchanged.

    DDP waits until the backward pass has reached every parameter, even those that the loss does not use.
    Because all parameters are inputs of this function, the backward pass reaches all of them. The function
    adds nothing to their gradients.
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
