"""Benchmark of corpus builds: files and megabytes of code per second, with one or more workers.

    python -m tests.benchmarks.corpus
    python -m tests.benchmarks.corpus repositories/ --workers 1 8 --json corpus.json

Without a SOURCE, the files of the installed Python are read. In the results, `reading` and `extraction` are
single steps in one process; a build includes all steps, up to the report.
"""

import argparse
import itertools
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.benchmarks import machine
from train.corpus import build, sources
from train.corpus.config import CorpusConfig
from train.corpus.engine import OneMachine
from train.corpus.extract import extract
from train.corpus.parts import Tally
from train.corpus.source_trees import Code

FILES = 5000  # for the single steps


def steps(names):
    """Measure two steps of a build: the reading of files, and the extraction of their comments."""
    started = time.perf_counter()
    items = itertools.chain.from_iterable(sources.read(name, 0, Tally()) for name in names)
    codes = list(itertools.islice((item for item in items if isinstance(item, Code)), FILES))
    read = time.perf_counter()
    comments = sum(1 for code in codes for _ in extract(code.data, code.language, Counter()))
    done = time.perf_counter()
    size = sum(len(code.data) for code in codes)
    return {
        "reading": speed(len(codes), size, read - started),
        "extraction": speed(len(codes), size, done - read) | {"comments": comments},
    }


def whole(names, workers):
    """Measure a whole build of a corpus with this number of workers."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        built = build.build(CorpusConfig(names), Path(folder) / "corpus", OneMachine(workers))
        seconds = time.perf_counter() - started
    texts = built["counts"]["train"] + built["counts"]["test"]
    return speed(built["files"].get("read", 0), built["files"].get("bytes", 0), seconds) | {"texts": texts}


def speed(files, size, seconds):
    return {
        "files": files,
        "seconds": round(seconds, 1),
        "files_per_second": round(files / seconds),
        "mb_per_second": round(size / 1e6 / seconds, 1),
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sources", nargs="*", default=[sources.INSTALLED_PYTHON], metavar="SOURCE")
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    result = steps(options.sources)
    for workers in options.workers:
        result[f"build, {workers} worker(s)"] = whole(tuple(options.sources), workers)
    for name, row in result.items():
        print(f"{name:20} {row['files']:>9,} files in {row['seconds']:>7,} s: "
              f"{row['files_per_second']:>7,} files/s {row['mb_per_second']:>7,} MB/s")  # fmt: skip
    if options.json:
        machine.write(options.json, **result)


if __name__ == "__main__":
    main()
