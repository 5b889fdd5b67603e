"""Benchmark of pretraining: against a plain baseline, on growing corpora, with several processes.

    python -m tests.benchmarks.pretrain configs/mini.yaml
    python -m tests.benchmarks.pretrain configs/base.yaml packing=documents --source 'comments/*.jsonl.gz'

Every figure is measured on this machine, in this run. Only tokens of texts count: not padding, and not the
placeholders of predicted tokens (slots). MFU is the model FLOPs of `train.pretrain.task.training_flops` per
second, over the device's peak (`train.runtime.gradients.peak_flops`). simllm and the baseline take turns;
each turn is a whole update of about the same number of tokens. An input of the baseline is one text, padded.
"""

import argparse
import itertools
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from simllm.errors import InputError
from simllm.metric import default_model
from simllm.model.tokenizer import Tokenizer
from tests.benchmarks import machine
from tests.benchmarks.training_speed import Stepper, beside_baseline
from train.corpus import build
from train.corpus.config import CorpusConfig
from train.pretrain.config import PretrainConfig
from train.pretrain.task import PretrainingTask
from train.runtime import config
from train.runtime.distributed import World, join_processes
from train.tokens import shards

TEXTS = 200_000  # at most this many texts of the source are read


def tokenized(source, settings, folder):
    """Tokenize the texts of a source with the default model's vocabulary; return them as shards."""
    corpus, file = Path(folder) / "corpus", Path(folder) / "texts.txt"
    build.build(CorpusConfig((source,)), corpus)
    with (corpus / build.TRAIN).open() as train, file.open("w") as some:
        some.writelines(itertools.islice(train, TEXTS))
    tokenizer = Tokenizer.load(default_model() / "tokenizer.json")
    return shards.write_or_load(
        file, "benchmark", tokenizer, settings.model.max_length, Path(folder) / "shards"
    )


def tiled(some, tokens):
    """Return a corpus of about `tokens` tokens, made by repeating the texts of `some`."""
    times = max(1, round(tokens / some.tokens))
    return shards.Shards(some.parts * times, np.tile(some.lengths, times))


def growth(settings, data, world, steps):
    """Measure the seconds until the first batches, and the tokens per second, for growing corpora."""
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
    """Train as one of several processes; the first one prints the speed of all processes together."""
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
    settings = config.load(PretrainConfig, options.config, options.overrides)
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
