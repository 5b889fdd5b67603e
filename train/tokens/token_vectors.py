"""Initial token vectors, from the counts of neighbouring tokens (`simllm.model.ppmi`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse

from simllm.io.folders import replacing
from simllm.model import ppmi
from train.tokens.shards import Shards


def at(folder: Path, shards: Shards, vocab_size: int, size: int) -> np.ndarray:
    """The vectors of these shards, computed once and kept in `folder`."""
    file = folder / "vectors.npy"
    if not file.is_file():
        with replacing(folder) as partial:
            np.save(partial / file.name, vectors(shards, vocab_size, size))
    return np.load(file)


def vectors(shards: Shards, vocab_size: int, size: int) -> np.ndarray:
    """(vocab_size, size) float32 with entries of standard deviation 1; zero for unseen tokens."""
    found = ppmi.vectors(_neighbours(shards, vocab_size), size)
    return (found / found.std()).astype(np.float32)


def _neighbours(shards: Shards, vocab_size: int) -> sparse.csr_matrix:
    """(V, V) how often two tokens stand near each other, in all shards."""
    counts = sparse.csr_matrix((vocab_size, vocab_size), dtype=np.float64)
    ends, first = np.cumsum(shards.lengths), 0
    for part in shards.parts:
        ids = np.asarray(part, np.int32)
        text = np.searchsorted(ends, np.arange(first, first + len(ids)), side="right")
        first += len(ids)
        counts += ppmi.neighbours(ids, text, vocab_size)
    return counts
