"""Worker processes on one machine, which extract the comments from batches of source files in parallel.

The comments from one batch are written to a file, which is called a part of the corpus. The worker processes
end when the process that started them ends.
"""

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

_excluded = ExcludedTexts(())  # set in each worker process


def run_jobs(jobs: Iterable[Job], excluded: ExcludedTexts, workers: int) -> None:
    """Extract the comments from batches of source files in several processes; write a file for each batch.

    Such a file is called a part of the corpus. Only a few batches are in memory at a time.

    Args:
        jobs: For each batch, the pickled batch and the file to write.
        excluded: Evaluation texts to leave out.
        workers: Number of processes.

    Raises:
        InputError: A file cannot be written, or a process was killed, perhaps for lack of memory.
    """
    context = multiprocessing.get_context("spawn")  # not fork, because torch may run threads
    pool = ProcessPoolExecutor(workers, context, _prepare_worker, (excluded, os.getpid()))
    running: set[Future[None]] = set()
    try:
        for data, file in jobs:
            running.add(pool.submit(_work, data, file))
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
    """Wait for running jobs, raise their errors, and return the jobs that are not finished.

    Args:
        running: The jobs.
        until: When to stop waiting: "ALL_COMPLETED" or "FIRST_COMPLETED", as in `concurrent.futures.wait`.
    """
    done, others = wait(running, return_when=until)
    for future in done:
        future.result()
    return others


def _prepare_worker(excluded: ExcludedTexts, parent: int) -> None:
    """Prepare a new worker process, which extracts the comments from batches of source files.

    The excluded texts are stored for all jobs of the worker. The worker will end when its parent ends.

    Args:
        excluded: Evaluation texts to leave out of all files that this worker writes.
        parent: The id of the parent: the process that started the worker.
    """
    global _excluded
    _excluded = excluded
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # only the parent reports an interrupt
    _end_with_parent(parent)


def _end_with_parent(parent: int) -> None:
    """Make this process end when its parent process (with the id `parent`) ends or is killed."""
    if sys.platform == "linux":  # the kernel kills this process, even while it is in a library
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent has ended before
        os._exit(1)
    threading.Thread(target=_exit_after_parent, daemon=True).start()


def _exit_after_parent() -> None:
    """Wait until the parent process has ended, then end this worker process."""
    parent = multiprocessing.parent_process()
    assert parent
    parent.join()
    os._exit(1)


def _work(data: bytes, file: Path) -> None:
    batch_comments.make_part(data, file, _excluded)
