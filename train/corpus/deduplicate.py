"""Deduplication of texts: the search for equal texts, and for near duplicates by MinHash signatures.

Near duplicates are texts whose signatures agree in at least 90% of their bytes.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from rensa import RMinHash

from train.corpus.text_hash import words

# A signature has BANDS bands (groups of ROWS bytes). If texts share 90% of their word pairs, at least one
# band is almost certainly equal.
BANDS, ROWS = 12, 5
SIGNATURE = BANDS * ROWS  # bytes
NEAR = 0.9  # estimated share of common word pairs from which texts are near duplicates
SHORT = 20  # words; in shorter texts, a single different word ("rows", "columns") may be essential
_ROUNDS = 16  # largest number of texts that a text is compared with in each band
_CHUNK = 1 << 18  # signatures that are compared at once
_COMPARED = 100  # largest number of texts of a set that a text is compared with in each band


def signature(text: str) -> NDArray[np.uint8]:
    """Compute the MinHash signature of a cleaned (lower-case ASCII) text.

    A text counts as the set of its pairs of adjacent words. If s and t are the signatures of two texts,
    `mean(s == t)` estimates the Jaccard similarity of the two sets. A text of fewer than `SHORT` (20) words
    is hashed as a whole. Therefore, two short texts are similar only if they are equal.

    Returns:
        (SIGNATURE,) bytes; SIGNATURE is 60. To save memory, only the lowest byte of each MinHash value is
        kept.
    """
    split, sketch = words(text), RMinHash(num_perm=SIGNATURE, seed=1)
    sketch.update([f"{a} {b}" for a, b in pairwise(split)] if len(split) >= SHORT else [" ".join(split)])
    return np.array(sketch.digest(), np.uint32).astype(np.uint8)


def find_originals(identities: NDArray[np.uint64], signatures: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Find for each text the earlier text that it repeats exactly or nearly.

    Exact repetitions have equal hashes. Near repetitions have similar MinHash signatures. If text C repeats
    B, and B repeats A, both B and C count as repetitions of A.

    Args:
        identities: (N,) for each of N texts, one hash of all its words.
        signatures: (N, SIGNATURE) MinHash signatures of the texts. The array may be memory-mapped.

    Returns:
        (N,) for each text, the index of the text that it repeats; its own index if it repeats none.
    """
    _, first, inverse = np.unique(identities, return_index=True, return_inverse=True)
    original = first[inverse]
    for columns in _bands():
        _merge(original, signatures, columns)
    return resolve(original)


def resolve(original: NDArray[np.int64]) -> NDArray[np.int64]:
    """Follow each chain of repeated texts to the first text of the chain.

    If text C repeats B, and B repeats A, the result for both B and C is the index of A.

    Args:
        original: (N,) for each text, the index of the text that it repeats; its own index if it repeats none.

    Returns:
        (N,) for each text, the index of the first text of its chain; its own index if it repeats none.
    """
    while (original[original] != original).any():
        original = original[original]
    return original


def band_keys(signatures: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Compute an integer key for each band (group of neighbouring bytes) of each signature.

    Two signatures have the same key for a band if and only if their bytes in this band are equal. Keys for
    different bands are never equal. Two texts that share a key may be near duplicates, and must be compared.

    Args:
        signatures: (N, SIGNATURE) MinHash signatures.

    Returns:
        (BANDS, N) keys.
    """
    above = np.uint64(8 * ROWS)  # the bits above those of `_pack`
    packed = [_pack(signatures[:, columns]) for columns in _bands()]
    return np.stack([keys + (np.uint64(band) << above) for band, keys in enumerate(packed)])


class NearDuplicates:
    """Finder of texts that repeat a text of a fixed set, exactly or nearly.

    The constructor gets the MinHash signatures of the set. A call of the object gets the signatures of other
    texts, and returns which of them repeat a text of the set.

    Args:
        signatures: (M, SIGNATURE) MinHash signatures of the texts in the set.
    """

    def __init__(self, signatures: NDArray[np.uint8]) -> None:
        self._signatures = signatures
        buckets = [_pack(signatures[:, columns]) for columns in _bands()]
        self._order = [np.argsort(bucket).astype(np.uint32) for bucket in buckets]
        self._sorted = [bucket[order] for bucket, order in zip(buckets, self._order, strict=True)]

    def __call__(self, signatures: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Find the given texts that equal or nearly repeat a text whose signature the constructor got.

        The texts whose signatures the constructor got are called the set. A given text is compared only with
        its candidates: the texts of the set whose signatures have the same bytes in a band (a group of
        neighbouring bytes). If one band gives more than `_COMPARED` (100) candidates, the given text is not
        compared with them, to save time. It then counts as a near duplicate.

        Args:
            signatures: (N, SIGNATURE) MinHash signatures of the given texts.

        Returns:
            (N,) bool, true for each given text that equals or nearly repeats a text of the set.
        """
        near = np.zeros(len(signatures), bool)
        for start in range(0, len(signatures), _CHUNK):
            near[start : start + _CHUNK] = self._near(np.asarray(signatures[start : start + _CHUNK]))
        return near

    def _near(self, signatures: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Find the given texts that equal or nearly repeat a text whose signature the constructor got.

        The texts whose signatures the constructor got are called the set. All given texts are compared at
        once, which needs memory. Therefore, `__call__` splits the given texts into chunks, and calls this
        method for each chunk.

        Args:
            signatures: (N, SIGNATURE) MinHash signatures of the given texts, few enough to fit in memory.

        Returns:
            (N,) bool, true for each given text that equals or nearly repeats a text of the set.
        """
        near = np.zeros(len(signatures), bool)
        for columns, order, bucket in zip(_bands(), self._order, self._sorted, strict=True):
            keys = _pack(signatures[:, columns])
            first, last = (np.searchsorted(bucket, keys, side) for side in ("left", "right"))
            near |= last - first > _COMPARED
            for at in range(_COMPARED):
                rows = np.flatnonzero(~near & (first + at < last))
                if not len(rows):
                    break
                others = self._signatures[order[first[rows] + at]]
                near[rows] = similarity(signatures[rows], others) >= NEAR
        return near


def similarity(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Estimate the Jaccard similarity of pairs of texts from their MinHash signatures.

    Each text counts as the set of its pairs of adjacent words.

    Args:
        first: (N, SIGNATURE) signatures of the first texts.
        second: (N, SIGNATURE) signatures of the second texts.

    Returns:
        (N,) for each pair of texts, an estimate from 0 to 1.
    """
    return np.asarray((first == second).mean(1))


def _merge(original: NDArray[np.int64], signatures: NDArray[np.uint8], columns: slice) -> None:
    """Find near duplicates among the texts whose signatures are equal in one band (group of columns).

    Texts that are already known to repeat an earlier text are skipped.

    Args:
        original: (N,) for each text, the index of the text that it repeats; its own index if it repeats none
            so far. The array is updated: if a near duplicate of an earlier text is found, its entry becomes
            the index of the earlier text.
        signatures: (N, SIGNATURE) MinHash signatures of the texts.
        columns: The columns of the band in `signatures`.
    """
    rows = np.flatnonzero(original == np.arange(len(original)))
    bucket = np.concatenate(
        [_pack(signatures[part, columns]) for part in _chunks(rows)] or [np.empty(0, np.uint64)]
    )
    for _ in range(_ROUNDS):
        _, first, inverse, count = np.unique(
            bucket, return_index=True, return_inverse=True, return_counts=True
        )
        alone = count[inverse] == 1
        head = rows[first][inverse]
        later = ~alone & (head != rows)
        rows, head, bucket = rows[later], head[later], bucket[later]
        if not len(rows):
            return
        near = np.concatenate(
            [
                similarity(signatures[a], signatures[b]) >= NEAR
                for a, b in zip(_chunks(rows), _chunks(head), strict=True)
            ]
        )
        original[rows[near]] = head[near]
        rows, bucket = rows[~near], bucket[~near]


def _bands() -> list[slice]:
    """Return the places of the bands (groups of neighbouring bytes) in a MinHash signature, as slices.

    A signature has `BANDS` (12) bands of `ROWS` (5) bytes each. Two texts are compared only if the bytes of
    at least one band are equal in both signatures.
    """
    return [slice(band * ROWS, (band + 1) * ROWS) for band in range(BANDS)]


def _pack(band: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Pack one band of each MinHash signature into an integer, so that the bands can be compared quickly.

    A band is a group of `ROWS` (5) neighbouring bytes of a signature.

    Args:
        band: (N, ROWS) bytes: the same band of N signatures.

    Returns:
        (N,) integers, one for each signature. Two integers are equal if and only if all bytes of the two
        bands are equal.
    """
    wide = np.zeros((len(band), 8), np.uint8)
    wide[:, :ROWS] = band
    return wide.view(np.uint64)[:, 0]


def _chunks(rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Split an array of row numbers into chunks of at most `_CHUNK` (2^18) numbers, to save memory."""
    return [rows[at : at + _CHUNK] for at in range(0, len(rows), _CHUNK)]
