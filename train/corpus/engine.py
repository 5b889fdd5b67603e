"""Interfaces for the steps of a corpus build that run in parallel, on one machine or on a cluster.

The first step makes the parts of the corpus. A part is a file with the comments from one batch of source
files. A comment has one or several texts: its summary (first sentence) and its other paragraphs. The second
step compares these texts by hashes and MinHash signatures, to find equal and similar texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from train.corpus.decontaminate import ExcludedTexts
from train.corpus.deduplicate import NearDuplicates
from train.corpus.part_file import Part

Job = tuple[bytes, Path]  # a pickled batch, and the file of its part


class Signatures(Protocol):
    """Interface to the MinHash signatures of all T texts of a corpus.

    The methods use the signatures to find equal and similar texts.
    """

    def find_originals(self, identities: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Find for each text the earlier text that it repeats exactly or nearly.

        Exact repetitions are found by the given hashes, near repetitions by the MinHash signatures.

        Args:
            identities: (T,) for each of the T texts of the corpus, one hash of all its words. Equal texts
                have equal hashes.

        Returns:
            (T,) for each text, the index of the text that it repeats; its own index if it repeats none.
        """
        ...

    def select(self, chosen: NDArray[np.bool_]) -> NDArray[np.uint8]:
        """Return the MinHash signatures of the chosen texts.

        Args:
            chosen: (T,) for each of the T texts of the corpus, true if it is chosen.

        Returns:
            (M, SIGNATURE) bytes: one row for each of the M chosen texts.
        """
        ...

    def near(self, others: NearDuplicates) -> NDArray[np.bool_]:
        """Find the texts of the corpus that equal or nearly repeat a text of another set.

        For example, the other set has the texts that are held out for testing.

        Args:
            others: An object that finds near duplicates of the texts in the other set.

        Returns:
            (T,) bool: for each of the T texts of the corpus, true if it equals or nearly repeats a text of
            the other set.
        """
        ...


class Engine(Protocol):
    """Interface of an engine, which runs the parallel steps of a corpus build.

    The engine makes parts of a corpus, and compares the MinHash signatures of their texts. A part is a file
    with the comments from one batch of source files.
    """

    def make_parts(self, jobs: Iterable[Job], excluded: ExcludedTexts) -> None:
        """Make parts of a corpus. A part is a file with the comments from one batch of source files.

        Only a few batches are in memory at a time.

        Args:
            jobs: For each part, the pickled batch and the file to write.
            excluded: Evaluation texts to leave out.

        Raises:
            InputError: A part cannot be written, or a worker process is killed.
        """
        ...

    def signatures(
        self, parts: Sequence[Part], sizes: Sequence[int], folder: Path
    ) -> AbstractContextManager[Signatures]:
        """Give access to the MinHash signatures of all texts of a corpus, to find equal and similar texts.

        Args:
            parts: The parts of the corpus. A part is a file with the comments from one batch of source files.
            sizes: The number of texts in each part.
            folder: A folder for a temporary file, which some engines need.

        Returns:
            A context manager that gives the signatures. If there is a temporary file, it is removed at the
            end of the `with` statement.
        """
        ...
