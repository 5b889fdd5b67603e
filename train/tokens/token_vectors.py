"""Initial token vectors, from the counts of neighbouring tokens (`simllm.model.ppmi`)."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy import sparse

from simllm.errors import InputError
from simllm.io.folders import replacing
from simllm.model import ppmi
from train.tokens.shards import Shards, digest


def at(folder: Path, shards: Shards, vocab_size: int, size: int) -> np.ndarray:
    """Return the vectors of these shards, computed once and kept in `folder` with their checksum.

    Damaged or missing files are written again. Raises InputError if a file cannot be read or written.
    """
    file, checksum = folder / "vectors.npy", folder / "sha256"
    try:
        if digest(file) == checksum.read_bytes().decode("ascii", "replace"):
            return np.load(file)
        print(f"warning: {file}: damaged (checksum differs); computed again", file=sys.stderr)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise InputError(f"{error.filename or file}: cannot be read ({error.strerror})") from None
    found = vectors(shards, vocab_size, size)
    with replacing(folder) as partial:
        np.save(partial / file.name, found)
        (partial / checksum.name).write_text(digest(partial / file.name), encoding="ascii")
    return found


def vectors(shards: Shards, vocab_size: int, size: int) -> np.ndarray:
    """(vocab_size, size) float32 with entries of standard deviation 1; zero for unseen tokens."""
    found = ppmi.ppmi_vectors(_neighbours(shards, vocab_size), size)
    return (found / found.std()).astype(np.float32)


def _neighbours(shards: Shards, vocab_size: int) -> sparse.csr_matrix:
    """(V, V) how often two tokens stand near each other, in all shards."""
    counts = sparse.csr_matrix((vocab_size, vocab_size), dtype=np.float64)
    ends, first = np.cumsum(shards.lengths), 0
    for part in shards.parts:
        ids = np.asarray(part, np.int32)
        text = np.searchsorted(ends, np.arange(first, first + len(ids)), side="right")
        first += len(ids)
        counts += ppmi.count_neighbours(ids, text, vocab_size)
    return counts
