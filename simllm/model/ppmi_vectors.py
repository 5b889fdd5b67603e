"""Token vectors from the positive pointwise mutual information (PPMI) of neighbouring tokens.

The vectors come from a factorisation of the PPMI matrix (Levy, Goldberg and Dagan, "Improving
distributional similarity with lessons learned from word embeddings", 2015). V is the size of the vocabulary.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import eigsh

from simllm.errors import InputError

_WINDOW = 5  # tokens on either side of a token that count as its neighbours
_SIZE = 256  # dimensions of weighted vectors
_SMOOTHING = 0.75  # exponent of token counts; it lowers the PPMI of rare tokens


def count_neighbours(
    ids: NDArray[np.integer], text_numbers: NDArray[np.integer], vocab_size: int
) -> sparse.csr_matrix:
    """Count how often two tokens are at most `_WINDOW` apart in a text: a symmetric (V, V) matrix.

    `ids` are the (T,) tokens of all texts, one text after the other; `text_numbers` (T,) tell the text of
    each.
    """
    counts = sparse.csr_matrix((vocab_size, vocab_size), dtype=np.float64)
    for distance in range(1, _WINDOW + 1):
        together = text_numbers[distance:] == text_numbers[:-distance]
        pairs = ids[:-distance][together], ids[distance:][together]
        counts += sparse.csr_matrix((np.ones(len(pairs[0])), pairs), shape=counts.shape)
    # Each pair was counted in the order of the text only.
    return counts + counts.T


def ppmi_vectors(counts: sparse.csr_matrix, size: int) -> NDArray[np.float64]:
    """Factorise the PPMI of (V, V) counts into (V, size) vectors; tokens without neighbours get zeros."""
    start = np.ones(counts.shape[0])  # a fixed start makes eigsh deterministic
    # LA: only the largest positive eigenvalues count, because the vectors need their roots.
    values, basis = eigsh(ppmi_matrix(counts), size, which="LA", v0=start)
    return basis * np.sqrt(values.clip(min=0))


def ppmi_matrix(counts: sparse.csr_matrix) -> sparse.csr_matrix:
    """Compute the (V, V) PPMI of every two tokens a and b from their symmetric (V, V) counts as neighbours.

    PPMI is large if a and b are neighbours more often than by chance. The formula is PPMI(a, b) = max(0, log
    p(a, b) - log q(a) - log q(b)), with these estimates of probabilities:

    - p(a, b): The share of pairs (a, b) among all pairs of neighbouring tokens.
    - p(a): The share of pairs whose first token is a.
    - s(a): p(a) ** 0.75, divided by the sum of these powers over all tokens.
    - q(a): The geometric mean of p(a) and s(a), a smoothed p(a), which lowers the PPMI of rare tokens.

    Levy, Goldberg and Dagan (2015) smooth only the probability of b. Here, both are smoothed, so that the
    matrix is symmetric.
    """
    pairs = counts.tocoo()
    total = np.asarray(counts.sum(axis=1)).ravel()
    p, smoothed = total / total.sum(), total**_SMOOTHING / (total**_SMOOTHING).sum()
    with np.errstate(divide="ignore"):  # tokens without neighbours have probability 0
        surprise = -(np.log(p) + np.log(smoothed)) / 2
    data = np.log(pairs.data / pairs.data.sum()) + surprise[pairs.row] + surprise[pairs.col]
    kept = data > 0
    return sparse.csr_matrix((data[kept], (pairs.row[kept], pairs.col[kept])), shape=counts.shape)


def weighted_vectors(texts: list[list[int]], vocab_size: int) -> NDArray[np.float64]:
    """Compute (V, D) vectors of the V tokens; D is 256, or less if the corpus has few different tokens.

    The norm of a vector is the token's inverse document frequency (idf). A token that does not occur in
    `texts` (token ids) has zeros.
    """
    lengths = [len(ids) for ids in texts]
    tokens = np.fromiter((token for ids in texts for token in ids), np.int32, sum(lengths))
    numbers = np.repeat(np.arange(len(texts)), lengths)
    frequency = np.bincount([token for ids in texts for token in set(ids)], minlength=vocab_size)
    idf = np.log((1 + len(texts)) / (1 + frequency))
    # Tokens that do not occur would be rows of zeros in the matrix to factorize.
    seen, compact = np.unique(tokens, return_inverse=True)
    if len(seen) < 3:
        raise InputError("word-vectors: no words in the corpus")
    counts = count_neighbours(compact, numbers, len(seen))
    # The sparse decomposition finds fewer factors than the matrix has rows.
    vectors = ppmi_vectors(counts, min(_SIZE, len(seen) - 1))
    weighted = np.zeros((vocab_size, vectors.shape[1]))
    weighted[seen] = (
        vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(min=1e-12) * idf[seen, None]
    )
    return weighted
