"""The engine that runs the parallel steps of a corpus build on one machine, not on a cluster."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from train.corpus import batch_comments, worker_processes
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.deduplicate import SIGNATURE, NearDuplicates, find_originals
from train.corpus.engine import Job
from train.corpus.part_file import Part


@dataclass(frozen=True)
class SignaturesOnDisk:
    """The MinHash signatures of all T texts of a corpus, in a file that is mapped into memory.

    The class implements the interface `engine.Signatures`.

    Attributes:
        rows: (T, SIGNATURE) bytes, one signature in each row.
    """

    rows: NDArray[np.uint8]

    def find_originals(self, identities: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Find for each text the earlier text that it repeats exactly or nearly.

        Args:
            identities: (T,) for each of the T texts of the corpus, one hash of all its words. Equal texts
                have equal hashes.

        Returns:
            (T,) for each text, the index of the text that it repeats; its own index if it repeats none.
        """
        return find_originals(identities, self.rows)

    def select(self, chosen: NDArray[np.bool_]) -> NDArray[np.uint8]:
        """Return the MinHash signatures of the chosen texts.

        Args:
            chosen: (T,) for each of the T texts of the corpus, true if it is chosen.

        Returns:
            (M, SIGNATURE) bytes: one row for each of the M chosen texts.
        """
        return self.rows[chosen]

    def near(self, others: NearDuplicates) -> NDArray[np.bool_]:
        """Find the texts of the corpus that equal or nearly repeat a text of another set.

        Args:
            others: An object that finds near duplicates of the texts in the other set.

        Returns:
            (T,) bool: for each of the T texts of the corpus, true if it equals or nearly repeats a text of
            the other set.
        """
        return others(self.rows)


@dataclass(frozen=True)
class OneMachine:
    """The engine that builds a corpus on one machine.

    Several processes make the parts of the corpus. A part is a file with the comments from one batch of
    source files. The MinHash signatures of all texts are stored in one file.

    Attributes:
        workers: Number of processes; 0 for one on each core.
    """

    workers: int = 0

    def make_parts(self, jobs: Iterable[Job], excluded: ExcludedTexts) -> None:
        """Make parts of a corpus. A part is a file with the comments from one batch of source files.

        Several worker processes make the parts. If `workers` is 1 or there is only one part, no worker
        process is started: the calling process does the work.

        Args:
            jobs: For each part, the pickled batch and the file to write.
            excluded: Evaluation texts to leave out.
        """
        workers = self.workers or _cores()
        jobs = iter(jobs)
        first = list(itertools.islice(jobs, 2))
        if workers == 1 or len(first) < 2:  # starting a process would take longer
            for data, file in itertools.chain(first, jobs):
                batch_comments.make_part(data, file, excluded)
        else:
            worker_processes.run_jobs(itertools.chain(first, jobs), excluded, workers)

    @contextmanager
    def signatures(
        self, parts: Sequence[Part], sizes: Sequence[int], folder: Path
    ) -> Iterator[SignaturesOnDisk]:
        """Store the MinHash signatures of all texts in a temporary file, and open the file.

        The file is removed at the end of the `with` statement.

        Args:
            parts: The parts of the corpus. A part is a file with the comments from one batch of source files.
            sizes: The number of texts in each part.
            folder: The folder for the temporary file.

        Yields:
            The signatures in the open file.
        """
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
