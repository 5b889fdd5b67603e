"""The engine that builds a corpus on one machine."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from train.corpus import batches, comment_batches
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.deduplicate import SIGNATURE, NearDuplicates, find_originals
from train.corpus.engine import Job
from train.corpus.parts import Part


@dataclass(frozen=True)
class SignaturesOnDisk:
    """The signatures of all T texts in a memory-mapped file; see `engine.Signatures`.

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
                comment_batches.make_part(data, file, excluded)
        else:
            batches.run_jobs(itertools.chain(first, jobs), excluded, workers)

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
