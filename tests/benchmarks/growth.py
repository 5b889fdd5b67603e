"""Benchmark of growth: time, memory and bytes of scoring and of corpus builds as the work grows.

    export OMP_NUM_THREADS=1
    taskset -c 1 python -m tests.benchmarks.growth pairs 10_000 1_000_000 --texts pairs.jsonl.gz
    taskset -c 1 python -m tests.benchmarks.growth files 1000 10_000 --texts comments.jsonl.gz
    taskset -c 1 python -m tests.benchmarks.growth comments 1_000_000 --texts comments.jsonl.gz
    python -m tests.benchmarks.growth nodes 1 2 --texts pairs.jsonl.gz
    python -m tests.benchmarks.growth corpus-nodes 1 2 --texts comments.jsonl.gz

The numbers are counts of:

pairs         pairs that one process scores in fast mode, by the included model or the model of `--model`
files         Java files with ten commented methods each, built into a corpus by one worker
comments      comments in JSON lines, built into a corpus by one worker
nodes         nodes of a Ray cluster on this machine, which score 8 files of pairs; one processor each
corpus-nodes  nodes of a Ray cluster, which build a corpus of 10,000 Java files

With a tiny `--model`, mainly reading, cleaning and writing are measured. Each text is new: the first words of
a random text of `--texts`, and the last words of another. This is needed because equal texts are encoded or
kept only once.

Memory is the largest sum over all processes. Bytes are what the processes read and wrote, temporary files
included. Memory and bytes are sampled five times a second. Processor time leaves out the processes of Ray.
"""

import argparse
import contextlib
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import psutil

from simllm.io import reading
from tests.benchmarks import machine

METHODS = 10  # in a Java file
SHARDS, SHARD = 8, 1000  # files of pairs on Ray, and pairs in each
FILES = 10_000  # Java files on Ray


class Watch(threading.Thread):
    """Context manager that measures the memory of all child processes, and the bytes they read and write."""

    def __init__(self):
        super().__init__(daemon=True)
        self.ended, self.memory, self.moved = threading.Event(), 0, {}

    def run(self):
        while not self.ended.wait(0.2):
            memory = 0
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    memory += process.memory_info().rss
                    moved = process.io_counters()
                    self.moved[process.pid] = moved.read_chars, moved.write_chars
            self.memory = max(self.memory, memory)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join()


def new_texts(file, length):
    """Yield endless new texts: the first half of a random text in a file, and the second half of another.

    The texts of the file are first cut to `length` words.
    """
    texts = [text.split()[:length] for _, row in reading.objects(file) for text in _strings(row)]
    chance = random.Random(0)
    while True:
        a, b = chance.choice(texts), chance.choice(texts)
        yield " ".join(a[: len(a) // 2] + b[len(b) // 2 :])


def _strings(row):
    return [row[key] for key in ("candidate", "reference", "text") if key in row]


def write_pairs(file, count, texts):
    with file.open("w") as lines:
        for _ in range(count):
            lines.write(json.dumps({"candidate": next(texts), "reference": next(texts)}) + "\n")


def write_comments(file, count, texts):
    with file.open("w") as lines:
        for _ in range(count):
            lines.write(json.dumps({"language": "java", "source": "made", "text": next(texts)}) + "\n")


def write_files(folder, count, texts):
    method = "    /** {}. */\n    int method{}(int value) {{\n        return value + {};\n    }}\n"
    for number in range(count):
        file = folder / f"repository{number // 1000}" / f"File{number}.java"
        file.parent.mkdir(parents=True, exist_ok=True)
        comments = (next(texts).replace("*/", "") for _ in range(METHODS))
        methods = "\n".join(method.format(text, n, n) for n, text in enumerate(comments))
        file.write_text(f"class File{number} {{\n{methods}}}\n")


def measure(command, folder):
    """Run a command; return its time, its memory, and the bytes that it read and wrote."""
    before, load = resource.getrusage(resource.RUSAGE_CHILDREN), os.getloadavg()[0]
    started = time.perf_counter()
    with Watch() as watch:
        subprocess.run([sys.executable, "-m", *map(str, command)], check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    read, written = (sum(sizes) for sizes in zip(*watch.moved.values(), strict=True))
    return {
        "seconds": round(seconds, 1),
        "processor_seconds": round(processor, 1),
        "peak_memory_mb": round(watch.memory / 1e6),
        "input_mb": round(_size(folder / "in") / 1e6, 2),
        "output_mb": round(_size(folder / "out") / 1e6, 2),
        "read_mb": round(read / 1e6, 1),
        "written_mb": round(written / 1e6, 1),
        "load_at_start": round(load, 2),
    }


def _size(path):
    paths = path.rglob("*") if path.is_dir() else [path]
    return sum(found.stat().st_size for found in paths if found.is_file())


def of_pairs(count, folder, texts, model=None):
    write_pairs(folder / "in", count, texts)
    command = ["simllm", "score", "--jsonl", folder / "in", "--mode=fast", "-qo", folder / "out"]
    return measure([*command, *(["--model", model] if model else [])], folder)


def of_files(count, folder, texts):
    write_files(folder / "in", count, texts)
    return measure(["train.corpus", "build", folder / "in", "--out", folder / "out", "--workers=1"], folder)


def of_comments(count, folder, texts):
    (folder / "in").mkdir()
    write_comments(folder / "in" / "comments.jsonl", count, texts)
    command = [
        "train.corpus",
        "build",
        folder / "in" / "comments.jsonl",
        "--out",
        folder / "out",
        "--workers=1",
    ]
    return measure(command, folder)


@contextlib.contextmanager
def ray_cluster(nodes):
    """Start a Ray cluster on this machine, with one processor in each node; yield its address."""
    os.environ["RAY_USAGE_STATS_ENABLED"], os.environ["RAY_AUTH_MODE"] = "0", "disabled"
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        for _ in range(nodes):
            cluster.add_node(num_cpus=1)
        yield cluster.address
    finally:
        cluster.shutdown()


def of_nodes(count, folder, texts):
    (folder / "in").mkdir()
    for number in range(SHARDS):
        write_pairs(folder / "in" / f"{number}.jsonl", SHARD, texts)
    command = ["simllm", "score", "--jsonl", folder / "in" / "*", "--mode=fast", "-qo", folder / "out"]
    with ray_cluster(count) as address:
        return {"pairs": SHARDS * SHARD} | measure([*command, "--engine=ray", f"--address={address}"], folder)


def of_corpus_nodes(count, folder, texts):
    write_files(folder / "in", FILES, texts)
    command = ["train.corpus", "build", folder / "in", "--out", folder / "out"]
    with ray_cluster(count) as address:
        return {"files": FILES} | measure([*command, "--engine=ray", f"--address={address}"], folder)


WORK = {
    "pairs": of_pairs,
    "files": of_files,
    "comments": of_comments,
    "nodes": of_nodes,
    "corpus-nodes": of_corpus_nodes,
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", choices=WORK)
    parser.add_argument("counts", nargs="+", type=int, metavar="COUNT")
    parser.add_argument("--texts", type=Path, required=True, help="JSON lines of pairs or of comments")
    parser.add_argument("--length", type=int, default=10, help="words of a text at most (default: 10)")
    parser.add_argument("--model", type=Path, help="model of `pairs` (default: the included one)")
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    if options.model and options.work != "pairs":
        parser.error("--model goes with pairs")
    of_work = partial(of_pairs, model=options.model) if options.model else WORK[options.work]
    result = {}
    for count in options.counts:
        with tempfile.TemporaryDirectory() as folder:
            result[count] = row = of_work(count, Path(folder), new_texts(options.texts, options.length))
        print(f"{count:>12,} {options.work:8} {row['seconds']:>8,} s {row['peak_memory_mb']:>7,} MB memory "
              f"{row['input_mb']:>8,} MB in {row['output_mb']:>8,} MB out", flush=True)  # fmt: skip
        if options.json:  # after each count, because the next may take long
            processors = len(os.sched_getaffinity(0))
            machine.write(
                options.json, processors=processors, length=options.length, **{options.work: result}
            )


if __name__ == "__main__":
    main()
