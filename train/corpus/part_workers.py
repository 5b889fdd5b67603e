"""Shares the work out: batches of the sources, each made into a part of the corpus on the disk.

A part's name has the hash of all it is made of. So a part that is there is never made again,
and what the parts are does not depend on how many processes make them.
"""

from __future__ import annotations

import hashlib
import itertools
import multiprocessing
import pickle
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from tqdm import tqdm

from simllm.errors import InputError
from train.corpus import decontaminate, make_part, sources
from train.corpus.decontaminate import Evaluated
from train.corpus.part_file import Part
from train.corpus.sources import Docstring, Item
from train.corpus.tally import Tally
from train.corpus.trees import Code
from train.runtime.config import CorpusConfig

BATCH = 4_000_000  # characters of code or comments a part, about
_excluded = Evaluated(())  # in a worker


def make(config: CorpusConfig, folder: Path, workers: int, files: Tally) -> list[Part]:
    """Make all parts of a corpus in `folder`; those that are there are left as they are."""
    for source in config.sources:
        sources.matching(source)
    folder.mkdir(parents=True, exist_ok=True)
    excluded = decontaminate.read(config.exclude)
    code = b"".join(file.read_bytes() for file in sorted(Path(__file__).parent.rglob("*.py")))
    version = hashlib.blake2b(code + excluded.digest.encode()).digest()
    made: list[Path] = []
    for partial in folder.glob("*.partial"):
        partial.unlink()

    def missing() -> Iterator[tuple[bytes, Path]]:
        for number, batch in enumerate(_batches(config, files)):
            data = pickle.dumps(batch)
            name = hashlib.blake2b(version + data, digest_size=12).hexdigest()
            made.append(folder / f"{number:06}-{name}.npz")
            if not made[-1].is_file():
                yield data, made[-1]

    jobs = missing()
    first = list(itertools.islice(jobs, 2))
    if workers == 1 or len(first) < 2:  # a process of its own would take longer to start
        for data, file in itertools.chain(first, jobs):
            make_part.make(data, file, excluded)
    else:
        _share_out(itertools.chain(first, jobs), excluded, workers)
    return [Part(file) for file in made]


def _batches(config: CorpusConfig, files: Tally) -> Iterator[tuple[str, list[Item]]]:
    with tqdm(unit="B", unit_scale=True, desc="reading", disable=None, leave=False) as bar:
        for source in config.sources:
            batch: list[Item] = []
            size = 0
            for item in sources.read(source, config.tags, files):
                batch.append(item)
                size += _size(item)
                if size >= BATCH:
                    bar.update(size)
                    yield source, batch
                    batch, size = [], 0
            if batch:
                yield source, batch


def _size(item: Item) -> int:
    """Characters that there are to work on, about."""
    if isinstance(item, Code):
        return len(item.data)
    return 100 + (len(item.text) if isinstance(item, Docstring) else len(item.summary + item.description))


def _share_out(jobs: Iterable[tuple[bytes, Path]], excluded: Evaluated, workers: int) -> None:
    """Do the jobs in processes; only a few wait in memory at a time."""
    context = multiprocessing.get_context("spawn")  # torch may run threads here: nothing to be forked
    pool = ProcessPoolExecutor(workers, context, _start, (excluded,))
    running: set[Future[None]] = set()
    try:
        for data, file in jobs:
            running.add(pool.submit(_work, data, file))
            if len(running) >= 2 * workers:
                running = _await(running, FIRST_COMPLETED)
        _await(running)
    except BrokenProcessPool:
        raise InputError(
            "a worker was killed, perhaps for want of memory; the same command goes on"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _await(running: set[Future[None]], until: str = "ALL_COMPLETED") -> set[Future[None]]:
    done, others = wait(running, return_when=until)
    for future in done:
        future.result()
    return others


def _start(excluded: Evaluated) -> None:
    global _excluded
    _excluded = excluded


def _work(data: bytes, file: Path) -> None:
    make_part.make(data, file, _excluded)
