"""Interfaces for the parallel steps of a corpus build."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from train.corpus.decontaminate import ExcludedTexts
from train.corpus.deduplicate import NearDuplicates
from train.corpus.parts import Part

Job = tuple[bytes, Path]  # a pickled batch, and the file of its part


class Signatures(Protocol):
    """The signatures of all T texts of a corpus."""

    def find_originals(self, identities: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Find the original of each text, from the signatures and the (T,) hashes of the texts."""
        ...

    def select(self, chosen: NDArray[np.bool_]) -> NDArray[np.uint8]:
        """Return the (M, SIGNATURE) signatures of the chosen texts; `chosen` is (T,)."""
        ...

    def near(self, others: NearDuplicates) -> NDArray[np.bool_]:
        """Return (T,) bool: which texts repeat, exactly or nearly, a text of another set."""
        ...


class Engine(Protocol):
    """An engine, which makes parts and compares signatures."""

    def make_parts(self, jobs: Iterable[Job], excluded: ExcludedTexts) -> None:
        """Make the parts of the jobs; only a few batches are in memory at a time.

        Raises InputError if a part cannot be written, or a worker process is killed.
        """
        ...

    def signatures(
        self, parts: Sequence[Part], sizes: Sequence[int], folder: Path
    ) -> AbstractContextManager[Signatures]:
        """Give access to the signatures of all texts, of which each part has as many as `sizes` says.

        Some engines need a temporary file in `folder`, which is removed at the end of the `with` statement.
        """
        ...
