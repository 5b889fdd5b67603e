"""Worker processes on one machine, which make parts and end when the process that started them ends."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from simllm.errors import InputError
from train.corpus import batch_comments
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.engine import Job

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
    batch_comments.make_part(data, file, _excluded)
