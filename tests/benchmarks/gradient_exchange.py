"""Benchmark of the exchange of gradients between processes.

    python -m tests.benchmarks.gradient_exchange configs/mini.yaml
    python -m tests.benchmarks.gradient_exchange configs/base.yaml batch_tokens=1024 --processes 1 2

Whole updates of pretraining are measured, on random texts. Three ways take turns: `overlapped`, the
exchange of the training loop (DDP, in buckets, during the last backward pass); `one message`, all gradients
after the last backward pass; and `none`, without an exchange. A process has one thread, or one GPU.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from simllm.model.config import ModelConfig
from tests.benchmarks import machine
from train.pretrain.config import PretrainConfig
from train.pretrain.task import PretrainingTask
from train.runtime import config as training_config
from train.runtime.distributed import join_processes
from train.runtime.gradients import GradientExchange
from train.runtime.loop import make_optimizer
from train.tokens.shards import Shards

WAYS = ("overlapped", "one message", "none")


def random_shards(config: ModelConfig, texts=20_000, like_comments=False):
    """Return texts of random tokens, of 8 to 64 tokens, or of lengths as in a corpus of comments."""
    random = np.random.default_rng(0)
    if like_comments:  # median 14, mean 17, a hundredth over 56
        lengths = (14 * np.exp(0.6 * random.standard_normal(texts))).clip(4, config.max_length)
    else:
        lengths = random.integers(8, min(64, config.max_length) + 1, texts)
    lengths = lengths.astype(np.int64)
    share = random.random(lengths.sum()) ** 3  # some tokens are frequent, so that there is something to learn
    return Shards([(5 + share * (config.vocab_size - 5)).astype(np.int64)], lengths)


def sum_in_one_message(model):
    """Replace a model's gradients by their sums over all processes, in one message."""
    parameters = [p for p in model.parameters() if p.grad is not None]
    flat = torch.cat([p.grad.flatten() for p in parameters])
    dist.all_reduce(flat)
    for parameter, part in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
        parameter.grad = part.view_as(parameter)


def measure(config, world, updates):
    """Return the updates per second of each way of exchange, and its time relative to no exchange."""
    data = random_shards(config.model)
    task = PretrainingTask(config, data, data, world)
    exchange = GradientExchange(task.model, world)
    adam = make_optimizer(task.model, config)
    seconds = {way: [] for way in WAYS}
    for update in range(updates + 1):  # the first is a warm-up
        for way in WAYS:
            world.sum_values(0)
            started = time.perf_counter()
            parts = task.losses(update) or [exchange.no_loss]
            for number, compute in enumerate(parts, 1):
                exchange.backward(compute()[0], is_last=way == "overlapped" and number == len(parts))
            if way == "one message" and world.size > 1:
                sum_in_one_message(task.model)
            nn.utils.clip_grad_norm_(task.model.parameters(), config.clip_norm)
            adam.step()
            adam.zero_grad()
            if world.device.type == "cuda":
                torch.cuda.synchronize()
            world.sum_values(0)  # the update ends when all processes have ended it
            seconds[way].append(time.perf_counter() - started)
    result = {way: round(1 / statistics.median(times[1:]), 3) for way, times in seconds.items()}
    for way in WAYS[:2]:  # on a busy machine, neighbouring updates are slowed down equally
        pairs = zip(seconds[way][1:], seconds["none"][1:], strict=True)
        result[f"{way}, time over none"] = round(statistics.median(a / b for a, b in pairs), 3)
    return result | {"megabytes": round(4 * sum(p.numel() for p in task.model.parameters()) / 1e6, 1)}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config", type=Path)
    parser.add_argument("overrides", nargs="*", metavar="key=value", default=[])
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--rank-result", type=Path, help=argparse.SUPPRESS)  # one process of several
    options = parser.parse_args()
    if options.rank_result:
        torch.set_num_threads(1)
        config = training_config.load(PretrainConfig, options.config, [*options.overrides, "out=none"])
        with join_processes() as world:
            result = measure(config, world, options.updates)
            if world.is_first:
                options.rank_result.write_text(json.dumps(result))
        return
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for count in options.processes:
            file = Path(folder) / f"{count}.json"
            launcher = ["torch.distributed.run", "--standalone", f"--nproc-per-node={count}", "-m"]
            command = [sys.executable, "-m", *launcher, "tests.benchmarks.gradient_exchange"]
            arguments = [str(options.config), *options.overrides, f"--updates={options.updates}"]
            subprocess.run([*command, *arguments, f"--rank-result={file}"], check=True)
            results[count] = json.loads(file.read_text())
            print(f"{count} process(es), updates/s:", results[count])
    if options.json:
        machine.write(options.json, updates_per_second=results)


if __name__ == "__main__":
    main()
