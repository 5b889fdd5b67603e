"""Initial token embeddings, from counts of neighbouring tokens (see `simllm.model.ppmi_vectors`)."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy import sparse

from simllm.errors import InputError
from simllm.io.output_folder import OutputFolder
from simllm.model import ppmi_vectors
from train.tokens.shards import Shards, digest


def load_or_compute(folder: Path, shards: Shards, vocab_size: int, size: int) -> np.ndarray:
    """Load the (V, D) float32 vectors in a folder; if they are missing or damaged, compute and save them."""
    file, checksum = folder / "vectors.npy", folder / "sha256"
    try:
        if digest(file) == checksum.read_bytes().decode("ascii", "replace"):
            return np.load(file)
        print(f"warning: {file}: damaged (checksum differs); computed again", file=sys.stderr)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise InputError(f"{error.filename or file}: cannot be read ({error.strerror})") from None
    vectors = compute(shards, vocab_size, size)
    with OutputFolder(folder, "token vectors").replacing(keep_edits=False) as partial:
        np.save(partial / file.name, vectors)
        (partial / checksum.name).write_text(digest(partial / file.name), encoding="ascii")
    return vectors


def compute(shards: Shards, vocab_size: int, size: int) -> np.ndarray:
    """Factorise the matrix of positive pointwise mutual information of neighbouring tokens.

    Returns (V, D) float32 vectors with a standard deviation of 1 over all values; zeros for tokens that are
    not in the texts.
    """
    vectors = ppmi_vectors.ppmi_vectors(_count_neighbours(shards, vocab_size), size)
    return (vectors / vectors.std()).astype(np.float32)


def _count_neighbours(shards: Shards, vocab_size: int) -> sparse.csr_matrix:
    """Count in a sparse (V, V) matrix how often two tokens are at most five tokens apart in a text."""
    counts = sparse.csr_matrix((vocab_size, vocab_size), dtype=np.float64)
    ends, first = np.cumsum(shards.lengths), 0
    for part in shards.parts:
        # Part by part, so that only one part of the corpus is in memory.
        ids = np.asarray(part, np.int32)
        text = np.searchsorted(ends, np.arange(first, first + len(ids)), side="right")
        first += len(ids)
        counts += ppmi_vectors.count_neighbours(ids, text, vocab_size)
    return counts
