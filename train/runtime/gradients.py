"""Gradients of an update: precision, exchange between the processes, and losses over large batches.

An update (optimizer step) may have several backward passes. The gradients are exchanged during the last one.
"""

# Without `from __future__ import annotations`, because DDP inspects the types of `_sum_bucket`.
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from simllm.model.torch_engine import pad
from simllm.scoring.embedding import batch_slices
from train.runtime.batching import combined_seed
from train.runtime.distributed import World, is_sharded

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}  # of matrix products


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """Return a context that computes matrix products in one of `PRECISIONS`."""
    return torch.autocast(device.type, PRECISIONS[precision], enabled=precision != "fp32")


def make_scaler(device: torch.device, precision: str) -> torch.amp.GradScaler:
    """Make the scaler of a run, which is active in fp16 only."""
    return torch.amp.GradScaler(device.type, enabled=precision == "fp16")


# Dense bfloat16 (V100: float16) operations per second, from the makers' data sheets.
# The first name that fits counts, so "H100" stands after its special forms.
_PEAK_FLOPS = {
    "B200": 2250e12,
    "H100 PCIe": 756e12,
    "H100 NVL": 835e12,
    "H100": 989e12,
    "H200": 989e12,
    "A100": 312e12,
    "L40S": 362e12,
    "V100": 125e12,
}


def peak_flops(device: torch.device, precision: str) -> float:
    """Return a device's peak of floating-point operations per second: from its data sheet, or measured."""
    if device.type == "cuda" and precision != "fp32":
        words = torch.cuda.get_device_name(device).replace("-", " ").split()
        for gpu, peak in _PEAK_FLOPS.items():
            if set(gpu.split()) <= set(words):
                return peak
    size = 8192 if device.type == "cuda" else 1024
    if device.type == "cpu" and precision == "fp16":
        size = 256  # many CPUs need seconds for a larger product
    matrix = torch.ones(size, size, dtype=PRECISIONS[precision], device=device)
    times: list[float] = []
    # At least twice, because the first product also loads the library.
    while len(times) < 2 or sum(times) < 0.1:
        started = time.perf_counter()
        matrix @ matrix
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - started)
    return 2 * size**3 / min(times)


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


def embedding_loss_parts(
    ids: Sequence[Sequence[int]],
    embed: Callable[[Tensor, Tensor], Tensor],
    loss_of: Callable[[Tensor], Tensor],
    *,
    width: int,
    chunk_tokens: int,
    seed: tuple[int, ...],
    cache_gradients: bool,
    world: World,
) -> list[LossPart]:
    """Split a loss over all embeddings of a batch into a sum of terms, one for each chunk of texts.

    1. Each process embeds some of the chunks.
    2. The processes share their embeddings. Every process computes the whole loss, and the gradient of the
       loss with respect to the embeddings.
    3. For each of its chunks, a process returns a function that computes a term, and the chunk's number of
       tokens. The term is the loss divided by the number of chunks. Its weight gradient is the part that
       flows through the chunk.

    Over all chunks and processes, values and weight gradients add up to those of the whole loss.

    Args:
        ids: The token ids of each of N texts.
        embed: Function that computes (B, D) embeddings from (B, L) token ids and their (B, L) mask.
        loss_of: Function that computes the loss, a scalar, from (N, D) embeddings.
        width: D.
        chunk_tokens: The largest number of tokens in a chunk, padding included.
        seed: Numbers that seed the dropout, such as the run's seed and the number of the batch.
        cache_gradients: Whether to embed each chunk twice, so that only one at a time has activations: first
            without them, and again for its term (Gao et al., "Scaling deep contrastive learning batch size
            under memory limited setup", 2021).
        world: The processes that share the texts.
    """
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))  # to save padding
    chunks = list(batch_slices([ids[i] for i in order], chunk_tokens))
    own_chunks = list(enumerate(chunks))[world.rank :: world.size]

    def embed_chunk(number: int, rows: slice) -> Tensor:
        torch.manual_seed(combined_seed(*seed, number))  # the same dropout both times
        tokens, mask = (world.to_device(tensor) for tensor in pad([ids[i] for i in order[rows]]))
        return embed(tokens, mask)

    with torch.set_grad_enabled(not cache_gradients):
        embedded = [embed_chunk(*chunk) for chunk in own_chunks]
    by_length = torch.zeros(len(ids), width, device=world.device)
    for (_, rows), part in zip(own_chunks, embedded, strict=True):
        by_length[rows] = part.detach()
    # Each row is zero in all processes but one.
    world.sum_tensor(by_length)
    places = world.to_device(torch.tensor(order))
    embeddings = torch.empty_like(by_length).index_copy_(0, places, by_length).requires_grad_()
    loss = loss_of(embeddings)
    gradient = torch.autograd.grad(loss, embeddings)[0][places]
    value = loss.detach() / len(chunks)

    def loss_part(chunk: tuple[int, slice], first: Tensor) -> tuple[Tensor, int]:
        again = embed_chunk(*chunk) if cache_gradients else first
        part = (again * gradient[chunk[1]]).sum()
        # The sum has the value of the loss, but the gradient of `part`.
        return part - part.detach() + value, sum(len(ids[i]) for i in order[chunk[1]])

    return [partial(loss_part, *both) for both in zip(own_chunks, embedded, strict=True)]
