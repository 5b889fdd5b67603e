"""Shares the work out: batches of the sources, each made into a part of the corpus on the disk.

A part's name has the hash of everything that decides on its content. So a part that is there is
not made again, and the parts do not depend on the number of processes that make them.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import itertools
import multiprocessing
import os
import pickle
import re
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from importlib import metadata
from pathlib import Path

from tqdm import tqdm

import simllm
from simllm.errors import InputError
from simllm.io import folders
from train.corpus import make_part, sources
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.part_file import Part
from train.corpus.sources import Docstring, Item
from train.corpus.tally import Tally
from train.corpus.trees import Code
from train.runtime.config import CorpusConfig

BATCH = 4_000_000  # characters of code or comments a part, about
_NAME = re.compile(r"\d{6,}-[0-9a-f]{24}\.npz|\.\d{6,}-[0-9a-f]{24}\.npz\.\w+\.partial")

# The code and the libraries that decide on the content of a part.
_CODE = ("train/corpus", "simllm/code", "simllm/io/files.py", "simllm/text.py")
_LIBRARIES = re.compile("rensa|tokenizers|tree[-_]sitter.*")
_PR_SET_PDEATHSIG = 1

_excluded = ExcludedTexts(())  # in a worker


def make(
    config: CorpusConfig, folder: Path, workers: int, excluded: ExcludedTexts, found: Tally
) -> list[Part]:
    """Make all parts of a corpus in `folder`; those that are there are left as they are.

    Raises InputError if a part cannot be written or read, or a worker is killed.
    """
    folders.own(folder)
    for name in _left(folder):
        if name.endswith(".partial"):
            (folder / name).unlink()
    decides = _version() + excluded.digest.encode()
    made: list[Part] = []

    def missing() -> Iterator[tuple[bytes, Path]]:
        for number, batch in enumerate(_batches(config, found)):
            data = pickle.dumps(batch)
            name = hashlib.blake2b(decides + data, digest_size=12).hexdigest()
            made.append(Part(folder / f"{number:06}-{name}.npz"))
            if not made[-1].is_whole():
                if made[-1].file.exists():
                    print(f"warning: {made[-1].file}: is damaged; it is made anew", file=sys.stderr)
                yield data, made[-1].file

    jobs = missing()
    first = list(itertools.islice(jobs, 2))
    if workers == 1 or len(first) < 2:  # a process of its own would take longer to start
        for data, file in itertools.chain(first, jobs):
            make_part.make(data, file, excluded)
    else:
        _share_out(itertools.chain(first, jobs), excluded, workers)
    return made


def remove(folder: Path) -> None:
    """Remove a folder of parts; files that are no parts are kept."""
    for name in _left(folder):
        (folder / name).unlink(missing_ok=True)
    folders.remove(folder)


def _left(folder: Path) -> list[str]:
    """The names of finished and unfinished parts in a folder, if there is one."""
    found = folder.iterdir() if folder.is_dir() else []
    return [file.name for file in found if _NAME.fullmatch(file.name)]


@functools.cache
def _version() -> bytes:
    """A hash of the code and the libraries that decide on the content of a part."""
    digest = hashlib.blake2b(f"{sys.version_info[:2]}".encode())
    top = Path(simllm.__file__).parents[1]
    for name in _CODE:
        path = top / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    installed = {(str(found.name), found.version) for found in metadata.distributions()}
    digest.update(repr(sorted(pair for pair in installed if _LIBRARIES.fullmatch(pair[0]))).encode())
    return digest.digest()


def _batches(config: CorpusConfig, found: Tally) -> Iterator[tuple[str, list[Item]]]:
    with tqdm(unit="B", unit_scale=True, desc="reading", disable=None, leave=False) as bar:
        for source in config.sources:
            batch: list[Item] = []
            size = 0
            for item in sources.read(source, config.tags, found):
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


def _share_out(jobs: Iterable[tuple[bytes, Path]], excluded: ExcludedTexts, workers: int) -> None:
    """Do the jobs in processes; only a few wait in memory at a time."""
    context = multiprocessing.get_context("spawn")  # torch may run threads here: nothing to be forked
    pool = ProcessPoolExecutor(workers, context, _start, (excluded, os.getpid()))
    running: set[Future[None]] = set()
    try:
        for data, file in jobs:
            running.add(pool.submit(_work, data, file))
            if len(running) >= 2 * workers:
                running = _await(running, FIRST_COMPLETED)
        _await(running)
    except BrokenProcessPool:
        raise InputError(
            "a worker was killed, perhaps for want of memory; run the same command again to resume"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _await(running: set[Future[None]], until: str = "ALL_COMPLETED") -> set[Future[None]]:
    done, others = wait(running, return_when=until)
    for future in done:
        future.result()
    return others


def _start(excluded: ExcludedTexts, parent: int) -> None:
    """Prepare a worker."""
    global _excluded
    _excluded = excluded
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the parent alone reports an interrupt
    _end_with(parent)


def _end_with(parent: int) -> None:
    """End this process when its parent ends, also if the parent is killed."""
    if sys.platform == "linux":  # the kernel sees to it, whatever this process is doing
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended just before
        os._exit(1)
    threading.Thread(target=_exit_after_parent, daemon=True).start()


def _exit_after_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent
    parent.join()
    os._exit(1)


def _work(data: bytes, file: Path) -> None:
    make_part.make(data, file, _excluded)
