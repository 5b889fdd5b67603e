"""Benchmark of pretraining: against a plain baseline, on growing corpora, with several processes.

    python -m tests.benchmarks.pretrain configs/mini.yaml
    python -m tests.benchmarks.pretrain configs/base.yaml packing=documents --source 'comments/*.jsonl.gz'

Every figure is measured on this machine, in this run. Tokens are tokens of text: padding and
slots do not count. MFU is the model FLOPs of `train.runtime.flops.training_flops` per second, over the
device's peak (`train.runtime.flops.peak_flops`). Both take whole updates, in turns, of about the
same number of tokens.
"""

import argparse
import itertools
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

from simllm.errors import InputError
from simllm.metric import default_model
from simllm.model.tokenizer import Tokenizer
from tests.benchmarks import machine
from tests.benchmarks.padded_baseline import Plain
from train.corpus import build
from train.corpus.config import CorpusConfig
from train.pretrain.config import PretrainConfig
from train.pretrain.task import PretrainingTask
from train.runtime import config_file
from train.runtime.distributed import World, join_processes
from train.runtime.flops import peak_flops
from train.runtime.gradient_exchange import GradientExchange
from train.runtime.optimizer_and_schedule import make_optimizer
from train.tokens import shards

TEXTS = 200_000  # at most this many texts of the source are read


def tokenized(source, settings, folder):
    """Return the texts of the source as shards, in the default model's vocabulary."""
    corpus, file = Path(folder) / "corpus", Path(folder) / "texts.txt"
    build.build(CorpusConfig((source,)), corpus)
    with (corpus / build.TRAIN).open() as train, file.open("w") as some:
        some.writelines(itertools.islice(train, TEXTS))
    tokenizer = Tokenizer.load(default_model() / "tokenizer.json")
    return shards.write_or_load(
        file, "benchmark", tokenizer, settings.model.max_length, Path(folder) / "shards"
    )


def tiled(some, tokens):
    """Return a corpus of this many tokens, made of repetitions of `some`."""
    times = max(1, round(tokens / some.tokens))
    return shards.Shards(some.parts * times, np.tile(some.lengths, times))


class Stepper:
    """Optimizer steps on given losses, with their durations."""

    def __init__(self, task, losses):
        self.task, self.losses = task, losses
        self.exchange = GradientExchange(task.model, task.world)
        self.adam = make_optimizer(task.model, task.config)
        self.update, self.tokens, self.times = 0, [], []

    def step(self):
        started, tokens = time.perf_counter(), 0
        parts = self.losses(self.update)
        for number, compute in enumerate(parts, 1):
            loss, count = compute()
            self.exchange.backward(loss, is_last=number == len(parts))
            tokens += count
        nn.utils.clip_grad_norm_(self.task.model.parameters(), self.task.config.clip_norm)
        self.adam.step()
        self.adam.zero_grad()
        if self.task.world.device.type == "cuda":
            torch.cuda.synchronize()
        self.times.append(time.perf_counter() - started)
        self.tokens.append(tokens)
        self.update += 1

    def speed(self):
        """Return the tokens per second of the median step; the first step is a warm-up."""
        return statistics.median(n / t for n, t in zip(self.tokens[1:], self.times[1:], strict=True))


def beside_baseline(settings, data, world, seconds, baseline_texts):
    """Measure simllm and the baseline in turns, until each has had its seconds."""
    tasks = [PretrainingTask(settings, data, data, world) for _ in range(2)]
    plain = Plain(tasks[1], baseline_texts)
    tasks[1].model.make_attention = None  # not needed by the baseline
    for layer in tasks[1].model.encoder.layers:
        layer._compiled_call_impl = None
    steppers = [Stepper(tasks[0], tasks[0].losses), Stepper(tasks[1], plain.losses)]
    memory = []
    for stepper in steppers:
        stepper.step()
        with machine.PeakMemory(world.device) as taken:
            stepper.step()
        memory.append(taken.peak)
    while min(sum(stepper.times) for stepper in steppers) < seconds:
        min(steppers, key=lambda stepper: sum(stepper.times)).step()
    rows = tasks[0]._prepare_batches(0)[0]
    real = sum(int(batch.shape.sum() + batch.shape[:, 1].sum()) for batch in rows)
    padding = [1 - real / sum(len(batch.tokens) for batch in rows), statistics.mean(plain.paddings)]
    peak = peak_flops(world.device, settings.precision)
    return {
        name: {
            "tokens_per_second": round(stepper.speed()),
            "mfu": round(stepper.speed() * tasks[0].flops_per_token / peak, 3),
            "peak_memory_mb": round(memory[i] / 1e6),
            "padding": round(padding[i], 4),
            "steps": len(stepper.times),
        }
        for i, (name, stepper) in enumerate(zip(("simllm", "plain"), steppers, strict=True))
    } | {"ratio": round(steppers[0].speed() / steppers[1].speed(), 2), "peak_flops": peak}


def growth(settings, data, world, steps):
    """Measure the seconds until the first batches, and the speed, by size of the corpus."""
    found = {}
    for millions in (1, 10, 100):
        corpus = tiled(data, millions * 1_000_000)
        started = time.perf_counter()
        task = PretrainingTask(settings, corpus, data, world)
        task._prefetcher[123_456]
        first = time.perf_counter() - started
        stepper = Stepper(task, task.losses)
        for _ in range(steps):
            stepper.step()
        found[f"{millions}M"] = {
            "first_batch_seconds": round(first, 2),
            "tokens_per_second": round(stepper.speed()),
        }
    return found


def several(arguments, processes):
    """Measure the tokens per second of several processes that share the cores of this machine."""
    threads = max(1, len(os.sched_getaffinity(0)) // processes)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"]
    done = subprocess.run(
        [*launch, "-m", "tests.benchmarks.pretrain", *arguments, "--worker"],
        env=os.environ | {"OMP_NUM_THREADS": str(threads)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return round(float(re.search(r"speed ([\d.]+)", done.stdout)[1]))


def work(settings, data, steps):
    """Train in one of several processes."""
    with join_processes() as world:
        task = PretrainingTask(settings, data, data, world)
        stepper = Stepper(task, task.losses)
        for _ in range(steps):
            stepper.step()
        speeds = world.sum_values(stepper.speed())
        if world.is_first:
            print("speed", *speeds)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config", type=Path)
    parser.add_argument("overrides", nargs="*", metavar="key=value")
    parser.add_argument("--source", default="installed-python", help="as in a config's corpus.sources")
    parser.add_argument("--seconds", type=float, default=30, help="of training, for each of both ways")
    parser.add_argument(
        "--steps", type=int, default=6, help="for each size of corpus and number of processes"
    )
    parser.add_argument(
        "--plain-texts", type=int, default=32, help="a batch of the baseline (the paper's 32)"
    )
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_intermixed_args()
    settings = config_file.load(PretrainConfig, options.config, options.overrides)
    with tempfile.TemporaryDirectory() as folder:
        data = tokenized(options.source, settings, folder)
        vocabulary = max(settings.model.vocab_size, 1 + max(int(part.max()) for part in data.parts))
        settings = replace(settings, model=replace(settings.model, vocab_size=vocabulary))
        if options.worker:
            work(settings, data, options.steps)
            return
        world = World(device=torch.device("cuda" if torch.cuda.is_available() else "cpu"))
        lengths = np.sort(data.lengths)
        print(f"{len(lengths):,} texts, {data.tokens:,} tokens; a text: {lengths.mean():.1f} on average, "
              f"{np.median(lengths):.0f} median, {lengths[-1]} at most")  # fmt: skip
        result = beside_baseline(settings, data, world, options.seconds, options.plain_texts)
        for name in ("simllm", "plain"):
            row = result[name]
            print(f"{name:7} {row['tokens_per_second']:>9,} tokens/s   MFU {row['mfu']:6.1%}   "
                  f"peak memory {row['peak_memory_mb']:>7,} MB   padding {row['padding']:6.2%}")  # fmt: skip
        print(f"ratio   {result['ratio']}")
        result["growth"] = growth(settings, data, world, options.steps)
        for size, row in result["growth"].items():
            print(f"{size:>5} tokens of corpus: {row['tokens_per_second']:>9,} tokens/s, "
                  f"first batch after {row['first_batch_seconds']} s")  # fmt: skip
        counts = (1, 2) if torch.cuda.device_count() != 1 else (1,)
        arguments = [sys.argv[i] for i in range(1, len(sys.argv))]
        result["processes"] = {count: several(arguments, count) for count in counts}
        for count, speed in result["processes"].items():
            print(f"{count} process(es): {speed:>9,} tokens/s")
    if options.json:
        machine.write(options.json, **result)


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        sys.exit(f"error: {error}")
