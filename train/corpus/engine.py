"""The engines of a build: their interface, and the engine for one machine with its worker processes.

The engine for a Ray cluster is in `ray_engine`.
"""

from __future__ import annotations

import ctypes
import itertools
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from simllm.errors import InputError
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.deduplicate import SIGNATURE, NearDuplicates, find_originals
from train.corpus.extract import make_part
from train.corpus.parts import Part

Job = tuple[bytes, Path]  # a pickled batch, and the file of its part


_PR_SET_PDEATHSIG = 1


class Signatures(Protocol):
    """The signatures of all T texts of a corpus."""

    def find_originals(self, identities: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Find the original of each text, from the signatures and the (T,) hashes of the texts."""

    def select(self, chosen: NDArray[np.bool_]) -> NDArray[np.uint8]:
        """Return the (M, SIGNATURE) signatures of the chosen texts; `chosen` is (T,)."""

    def near(self, others: NearDuplicates) -> NDArray[np.bool_]:
        """Return (T,) bool: which texts repeat, exactly or nearly, a text of another set."""


class Engine(Protocol):
    """An engine, which makes parts and compares signatures."""

    def make_parts(self, jobs: Iterable[Job], excluded: ExcludedTexts) -> None:
        """Make the parts of the jobs; only a few batches are in memory at a time.

        Raises InputError if a part cannot be written, or a worker process is killed.
        """

    def signatures(
        self, parts: Sequence[Part], sizes: Sequence[int], folder: Path
    ) -> AbstractContextManager[Signatures]:
        """Give access to the signatures of all texts, of which each part has as many as `sizes` says.

        Some engines need a temporary file in `folder`, which is removed at the end of the `with` statement.
        """


@dataclass(frozen=True)
class SignaturesOnDisk:
    """The signatures of all T texts in a memory-mapped file; see `Signatures`.

    Attributes:
        rows: (T, SIGNATURE) bytes.
    """

    rows: NDArray[np.uint8]

    def find_originals(self, identities: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Find the original of each text."""
        return find_originals(identities, self.rows)

    def select(self, chosen: NDArray[np.bool_]) -> NDArray[np.uint8]:
        """Return the signatures of the chosen texts."""
        return self.rows[chosen]

    def near(self, others: NearDuplicates) -> NDArray[np.bool_]:
        """Find the texts that repeat a text of another set."""
        return others(self.rows)


@dataclass(frozen=True)
class OneMachine:
    """The engine for one machine; `workers` is the number of processes, 0 for one on each core."""

    workers: int = 0

    def make_parts(self, jobs: Iterable[Job], excluded: ExcludedTexts) -> None:
        """Make parts in worker processes, or in this process if there is only one worker or job."""
        workers = self.workers or _cores()
        jobs = iter(jobs)
        first = list(itertools.islice(jobs, 2))
        # Starting a process would take longer.
        if workers == 1 or len(first) < 2:
            for data, file in itertools.chain(first, jobs):
                make_part(data, file, excluded)
        else:
            run_jobs(itertools.chain(first, jobs), excluded, workers)

    @contextmanager
    def signatures(
        self, parts: Sequence[Part], sizes: Sequence[int], folder: Path
    ) -> Iterator[SignaturesOnDisk]:
        """Collect the signatures in a temporary file in `folder`, and map it into memory."""
        file, count = folder / "signatures", sum(sizes)
        if not count:
            yield SignaturesOnDisk(np.empty((0, SIGNATURE), np.uint8))
            return
        try:
            with file.open("wb") as target:
                for part in parts:
                    target.write(part["signatures"].tobytes())
            yield SignaturesOnDisk(np.memmap(file, np.uint8, "r", shape=(count, SIGNATURE)))
        finally:
            file.unlink(missing_ok=True)


def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_excluded = ExcludedTexts(())  # set in each worker process


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
    make_part(data, file, _excluded)
