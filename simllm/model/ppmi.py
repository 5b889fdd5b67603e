"""Vectors of tokens from counts alone.

Positive pointwise mutual information of neighbouring tokens, factorised (Levy, Goldberg and
Dagan, "Improving distributional similarity with lessons learned from word embeddings", 2015).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import eigsh

_WINDOW = 5  # tokens on either side that count as neighbours
_SMOOTHING = 0.75  # exponent of a context's count: rare contexts do not surprise as much


def neighbours(ids: NDArray[np.integer], text: NDArray[np.integer], vocab_size: int) -> sparse.csr_matrix:
    """(V, V) how often two tokens stand within the window of each other, in one text.

    `ids` are the (T,) tokens of texts one after the other, `text` the (T,) numbers of the texts.
    """
    counts = sparse.csr_matrix((vocab_size, vocab_size), dtype=np.float64)
    for distance in range(1, _WINDOW + 1):
        together = text[distance:] == text[:-distance]
        pairs = ids[:-distance][together], ids[distance:][together]
        counts += sparse.csr_matrix((np.ones(len(pairs[0])), pairs), shape=counts.shape)
    return counts + counts.T


def vectors(counts: sparse.csr_matrix, size: int) -> NDArray[np.float64]:
    """(V, size) vectors from the counts of `neighbours`; zero for unseen tokens."""
    start = np.ones(counts.shape[0])  # else eigsh draws one, and no two runs agree
    values, basis = eigsh(information(counts), size, which="LA", v0=start)
    return basis * np.sqrt(values.clip(min=0))


def information(counts: sparse.csr_matrix) -> sparse.csr_matrix:
    """(V, V) max(0, log p(a, b) / (p(a) p(b))), the mean of a given b and b given a, smoothed."""
    pairs = counts.tocoo()
    total = np.asarray(counts.sum(axis=1)).ravel()
    p, smoothed = total / total.sum(), total**_SMOOTHING / (total**_SMOOTHING).sum()
    with np.errstate(divide="ignore"):  # of tokens that are in no pair
        surprise = -(np.log(p) + np.log(smoothed)) / 2
    data = np.log(pairs.data / pairs.data.sum()) + surprise[pairs.row] + surprise[pairs.col]
    kept = data > 0
    return sparse.csr_matrix((data[kept], (pairs.row[kept], pairs.col[kept])), shape=counts.shape)
