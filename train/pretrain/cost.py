"""An estimate of the cost of a pretraining run: parameters, memory, floating-point operations and time."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from train.pretrain.config import PretrainConfig
from train.pretrain.task import PretrainingTask
from train.runtime.distributed import World
from train.runtime.loop import make_optimizer, set_up_encoders
from train.runtime.precision import peak_flops
from train.tokens.shards import Shards

# Tokens of a typical summary.
_TYPICAL = 16
# Tokens of the trial batch on a CPU, which take seconds.
_PROBE = 2048


def estimate(config: PretrainConfig, world: World) -> str:
    """Train on random tokens for two updates, and extrapolate to a table in plain text."""
    device, whole = world.device, config
    if device.type == "cpu" and peak_flops(device, config.precision) < peak_flops(device, "fp32"):
        # The CPU emulates bfloat16: a trial would take minutes.
        config = replace(config, precision="fp32")
    length = config.model.max_length if config.packing == "blocks" else min(_TYPICAL, config.model.max_length)
    tokens = config.batch_tokens if device.type == "cuda" else max(_PROBE, config.model.max_length)
    config = replace(config, batch_tokens=-(-tokens // length) * length, accumulation=1)
    texts = 2 * math.ceil(config.batch_tokens / length)
    ids = np.random.default_rng(0).integers(5, config.model.vocab_size, texts * length)
    shards = Shards([ids], np.full(texts, length))
    task = PretrainingTask(config, shards, shards, World(device=device))
    set_up_encoders(task.model, config)
    adam = make_optimizer(task.model, config)
    times, activations = [], 0
    # The first update also compiles, allocates and fills caches.
    for update in range(2):
        started = time.perf_counter()
        with _saved_bytes(device) as saved:
            loss, tokens = task.losses(update)[0]()
        activations = sum(saved.values())
        loss.backward()
        adam.step()
        adam.zero_grad()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - started)

    parameters = sum(p.numel() for p in task.model.parameters())
    # Weights, gradients and Adam's two moments take 4 bytes each per parameter.
    memory = 16 * parameters + activations / tokens * whole.batch_tokens
    if device.type == "cuda":  # the trial batch has the real size
        # The trial batch has the real size.
        memory = torch.cuda.max_memory_allocated(device)
    speed = tokens / times[-1] * world.size
    total = whole.update_tokens * whole.updates
    flops = task.flops_per_token
    share = speed * flops / (peak_flops(device, config.precision) * world.size)
    kind = f"{length} tokens each, random"
    emulated = config.precision != whole.precision
    rows = {
        "parameters": f"{parameters / 1e6:.1f} M, language-model head included",
        "tokens per update": f"{whole.update_tokens:,} = {whole.accumulation} x {whole.batch_tokens:,}",
        "tokens in total": f"{total / 1e9:.3g} billion in {whole.updates:,} updates",
        "arithmetic": f"{flops / 1e9:.3g} GFLOP per token, {flops * total:.3g} FLOP in total",
        "memory": f"{memory / 2**30:.1f} GiB per process: weights, gradients, Adam, one batch's activations",
        "device": f"{world.size} x {device}, {config.precision}: {speed:,.0f} tokens/s, MFU {share:.0%}"
        f" (texts of {kind})",
        "time": f"{_format_time(total / speed)}, evaluation not counted"
        + (f", with precision=fp32; {whole.precision} takes longer on this CPU" if emulated else ""),
    }
    width = max(map(len, rows))
    return "\n".join(f"{name:{width}}  {value}" for name, value in rows.items())


@contextmanager
def _saved_bytes(device: torch.device) -> Iterator[dict[int, int]]:
    """Record the tensors that are stored for the backward pass: from memory address to bytes.

    The dictionary is filled inside the context, and stays empty on a GPU, where PyTorch measures memory.
    """
    saved: dict[int, int] = {}
    if device.type == "cuda":
        yield saved
        return

    def keep(tensor: Tensor) -> Tensor:
        # Weights are counted already.
        if not (tensor.is_leaf and tensor.requires_grad):
            saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        yield saved


def _format_time(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} seconds"
