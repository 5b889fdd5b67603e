"""Token vectors from counts alone: a small encoder that starts from them learns sooner.

Positive pointwise mutual information of neighbouring tokens, factorised (Levy, Goldberg and
Dagan, "Improving distributional similarity with lessons learned from word embeddings", 2015).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh

from simllm.files import replacing
from train.shards import Shards

_WINDOW = 5  # tokens on either side that count as neighbours
_SMOOTHING = 0.75  # exponent of a context's count: rare contexts do not surprise as much


def at(folder: Path, shards: Shards, vocab_size: int, size: int) -> np.ndarray:
    """The vectors of these shards, computed once and kept in `folder`."""
    file = folder / "vectors.npy"
    if not file.is_file():
        with replacing(folder) as partial:
            np.save(partial / file.name, vectors(shards, vocab_size, size))
    return np.load(file)


def vectors(shards: Shards, vocab_size: int, size: int) -> np.ndarray:
    """(vocab_size, size) float32 with entries of standard deviation 1; zero for unseen tokens."""
    start = np.ones(vocab_size)  # else eigsh draws one, and no two runs agree
    values, basis = eigsh(_ppmi(_neighbours(shards, vocab_size)), size, which="LA", v0=start)
    found = basis * np.sqrt(values.clip(min=0))
    return (found / found.std()).astype(np.float32)


def _neighbours(shards: Shards, vocab_size: int) -> sparse.csr_matrix:
    """(V, V) how often two tokens stand within the window of each other, in one text."""
    counts = sparse.csr_matrix((vocab_size, vocab_size), dtype=np.float64)
    ends, first = np.cumsum(shards.lengths), 0
    for part in shards.parts:
        ids = np.asarray(part, np.int32)
        text = np.searchsorted(ends, np.arange(first, first + len(ids)), side="right")
        first += len(ids)
        for distance in range(1, _WINDOW + 1):
            together = text[distance:] == text[:-distance]
            pairs = ids[:-distance][together], ids[distance:][together]
            counts += sparse.csr_matrix((np.ones(len(pairs[0])), pairs), shape=counts.shape)
    return counts + counts.T


def _ppmi(counts: sparse.csr_matrix) -> sparse.csr_matrix:
    """(V, V) max(0, log p(a, b) / (p(a) p(b))), the mean of a given b and b given a, smoothed."""
    pairs = counts.tocoo()
    total = np.asarray(counts.sum(axis=1)).ravel()
    p, smoothed = total / total.sum(), total**_SMOOTHING / (total**_SMOOTHING).sum()
    with np.errstate(divide="ignore"):  # of tokens that are in no pair
        surprise = -(np.log(p) + np.log(smoothed)) / 2
    data = np.log(pairs.data / pairs.data.sum()) + surprise[pairs.row] + surprise[pairs.col]
    kept = data > 0
    return sparse.csr_matrix((data[kept], (pairs.row[kept], pairs.col[kept])), shape=counts.shape)
