"""Worker processes on one machine, which make parts and end when the process that started them ends."""

from __future__ import annotations

import ctypes
import functools
import hashlib
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
from simllm.io.output_folder import OutputFolder
from train.corpus import comment_batches, sources
from train.corpus.config import PARTS, CorpusConfig
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.engine import Engine, Job
from train.corpus.parts import Part, Tally
from train.corpus.source_trees import Code
from train.corpus.sources import Docstring, Item

_PR_SET_PDEATHSIG = 1

# Set in each worker process.
_excluded = ExcludedTexts(())


def run_jobs(jobs: Iterable[Job], excluded: ExcludedTexts, workers: int) -> None:
    """Make the parts of the jobs in several processes; only a few batches are in memory at a time."""
    # Not fork, because torch may run threads.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, _prepare_worker, (excluded, os.getpid()))
    running: set[Future[None]] = set()
    try:
        for data, file in jobs:
            running.add(pool.submit(_work, data, file))
            # Each worker has a batch in work and one in waiting.
            if len(running) >= 2 * workers:
                running = _await(running, FIRST_COMPLETED)
        _await(running)
    except BrokenProcessPool:
        raise InputError(
            "a worker was killed, perhaps for lack of memory; rerun the same command to resume"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _await(running: set[Future[None]], until: str = "ALL_COMPLETED") -> set[Future[None]]:
    """Wait as `concurrent.futures.wait` does, raise errors, and return the unfinished jobs."""
    done, others = wait(running, return_when=until)
    for future in done:
        future.result()
    return others


def _prepare_worker(excluded: ExcludedTexts, parent: int) -> None:
    """Prepare a new worker of the process with the id `parent`."""
    global _excluded
    _excluded = excluded
    # Only the parent reports an interrupt.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _end_with_parent(parent)


def _end_with_parent(parent: int) -> None:
    """Make this process end when its parent ends or is killed."""
    # The kernel kills this process, even while it is in a library.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # The parent has ended before.
    if os.getppid() != parent:
        os._exit(1)
    threading.Thread(target=_exit_after_parent, daemon=True).start()


def _exit_after_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent
    parent.join()
    os._exit(1)


def _work(data: bytes, file: Path) -> None:
    comment_batches.make_part(data, file, _excluded)


# Approximate characters of code or comments in a part.
BATCH = 4_000_000
_NAME = re.compile(r"\d{6,}-[0-9a-f]{24}\.npz|\.\d{6,}-[0-9a-f]{24}\.npz\.\w+\.partial")

# The code and the libraries that can change the content of a part.
_CODE = (
    "train/corpus",
    "simllm/code",
    "simllm/io/reading.py",
    "simllm/io/reading.py",
    "simllm/io/tables.py",
    "simllm/text_cleaning.py",
)
_LIBRARIES = re.compile("rensa|tokenizers|tree[-_]sitter.*")


def make_parts(
    config: CorpusConfig,
    folder: Path,
    engine: Engine,
    excluded: ExcludedTexts,
    tally: Tally,
    allow_download: bool = False,
) -> list[Part]:
    """Make the missing parts in `folder`, and return all parts in the order of the sources."""
    OutputFolder(folder, PARTS).own()
    for name in _part_names(folder):
        # Left by a build that was killed.
        if name.endswith(".partial"):
            (folder / name).unlink()
    version = _version() + excluded.digest.encode()
    parts: list[Part] = []

    def missing() -> Iterator[Job]:
        """Yield a job for each missing or damaged part, and append all parts to `parts`."""
        for number, batch in enumerate(_batches(config, tally, allow_download)):
            data = pickle.dumps(batch)
            # The name has a hash of everything that decides the content, so that a part with this name need
            # not be made again.
            name = hashlib.blake2b(version + data, digest_size=12).hexdigest()
            parts.append(Part(folder / f"{number:06}-{name}.npz"))
            if not parts[-1].is_whole():
                if parts[-1].file.exists():
                    print(f"warning: {parts[-1].file}: is damaged; it is made again", file=sys.stderr)
                yield data, parts[-1].file

    engine.make_parts(missing(), excluded)
    return parts


def remove_parts(folder: Path) -> None:
    """Remove all parts from a folder, and the folder, too, if it has no other files."""
    for name in _part_names(folder):
        (folder / name).unlink(missing_ok=True)
    OutputFolder(folder).remove()


def _part_names(folder: Path) -> list[str]:
    """List the names of parts in a folder, including unfinished ones."""
    entries = folder.iterdir() if folder.is_dir() else []
    return [file.name for file in entries if _NAME.fullmatch(file.name)]


@functools.cache
def _version() -> bytes:
    """Hash all that can change the content of a part: code, libraries, Python version."""
    digest = hashlib.blake2b(f"{sys.version_info[:2]}".encode())
    top = Path(simllm.__file__).parents[1]
    for name in _CODE:
        path = top / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    installed = {(str(package.name), package.version) for package in metadata.distributions()}
    digest.update(repr(sorted(pair for pair in installed if _LIBRARIES.fullmatch(pair[0]))).encode())
    return digest.digest()


def _batches(config: CorpusConfig, tally: Tally, allow_download: bool) -> Iterator[tuple[str, list[Item]]]:
    """Yield batches of about `BATCH` characters with the names of their sources; show a progress bar."""
    with tqdm(unit="B", unit_scale=True, desc="reading", disable=None, leave=False) as bar:
        for source in config.sources:
            batch: list[Item] = []
            size = 0
            for item in sources.read(source, config.tags, tally, allow_download):
                batch.append(item)
                size += _size(item)
                if size >= BATCH:
                    bar.update(size)
                    yield source, batch
                    batch, size = [], 0
            if batch:
                yield source, batch


def _size(item: Item) -> int:
    """Estimate the number of characters to process for an item."""
    if isinstance(item, Code):
        return len(item.data)
    return 100 + (len(item.text) if isinstance(item, Docstring) else len(item.summary + item.description))
