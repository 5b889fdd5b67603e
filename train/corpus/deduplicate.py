"""Exact and near duplicates among cleaned texts, by hashes and MinHash signatures that ignore punctuation."""

from __future__ import annotations

import hashlib
import re
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray


def words(text: str) -> list[str]:
    """Split a cleaned text into its words, without punctuation."""
    return re.findall("[a-z0-9]+", text)


def identity(text: str) -> bytes:
    """Hash the words of a cleaned text to 8 bytes."""
    return hashlib.blake2b(" ".join(words(text)).encode(), digest_size=8).digest()


# A signature has BANDS bands (groups of ROWS bytes). If texts share 90% of their word pairs, at least one
# band is almost certainly equal.
BANDS, ROWS = 12, 5
SIGNATURE = BANDS * ROWS  # in bytes
NEAR = 0.9  # estimated share of common word pairs from which texts are near duplicates
# Words; in shorter texts, a single different word ("rows", "columns") may be essential. They are hashed as a
# whole, and are similar only if they are equal.
SHORT = 20
_ROUNDS = 16  # largest number of texts that a text is compared with in each band
_CHUNK = 1 << 18  # signatures that are compared at once
_COMPARED = 100  # largest number of texts of a set that a text is compared with in each band


def signature(text: str) -> NDArray[np.uint8]:
    """Compute the signature of a cleaned text, as the set of its pairs of adjacent words.

    `mean(s == t)` of two signatures estimates the Jaccard similarity of the two sets.
    """
    # Not at the top: training on a built corpus needs the hashes of this module, but no signatures.
    from rensa import RMinHash

    split, sketch = words(text), RMinHash(num_perm=SIGNATURE, seed=1)
    sketch.update([f"{a} {b}" for a, b in pairwise(split)] if len(split) >= SHORT else [" ".join(split)])
    # Only the lowest byte of each MinHash value is kept, to save memory.
    return np.array(sketch.digest(), np.uint32).astype(np.uint8)


def find_originals(identities: NDArray[np.uint64], signatures: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Find the original of each of N texts, from their (N,) hashes and (N, SIGNATURE) signatures.

    The signatures may be memory-mapped.
    """
    _, first, inverse = np.unique(identities, return_index=True, return_inverse=True)
    original = first[inverse]
    for columns in _bands():
        _merge(original, signatures, columns)
    return resolve(original)


def resolve(original: NDArray[np.int64]) -> NDArray[np.int64]:
    """Follow each chain of repeated texts to its first text: if C repeats B, and B repeats A, to A."""
    while (original[original] != original).any():
        original = original[original]
    return original


def band_keys(signatures: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Compute (BANDS, N) keys from (N, SIGNATURE) signatures.

    Two signatures have the same key for a band if and only if they agree in it. Keys of different bands
    differ.
    """
    # The bits above those of `_pack`.
    above = np.uint64(8 * ROWS)
    packed = [_pack(signatures[:, columns]) for columns in _bands()]
    return np.stack([keys + (np.uint64(band) << above) for band, keys in enumerate(packed)])


class NearDuplicates:
    """Finder of texts that repeat a text of a fixed set, exactly or nearly.

    It is made from the (M, SIGNATURE) signatures of the set.
    """

    def __init__(self, signatures: NDArray[np.uint8]) -> None:
        self._signatures = signatures
        buckets = [_pack(signatures[:, columns]) for columns in _bands()]
        self._order = [np.argsort(bucket).astype(np.uint32) for bucket in buckets]
        self._sorted = [bucket[order] for bucket, order in zip(buckets, self._order, strict=True)]

    def __call__(self, signatures: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Return (N,) bool: which texts with these (N, SIGNATURE) signatures repeat a text of the set."""
        near = np.zeros(len(signatures), bool)
        for start in range(0, len(signatures), _CHUNK):
            near[start : start + _CHUNK] = self._near(np.asarray(signatures[start : start + _CHUNK]))
        return near

    def _near(self, signatures: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Do the work of `__call__` for as many texts as fit in memory."""
        near = np.zeros(len(signatures), bool)
        for columns, order, bucket in zip(_bands(), self._order, self._sorted, strict=True):
            keys = _pack(signatures[:, columns])
            first, last = (np.searchsorted(bucket, keys, side) for side in ("left", "right"))
            # With more candidates, a text counts as near without a comparison, to save time.
            near |= last - first > _COMPARED
            for at in range(_COMPARED):
                rows = np.flatnonzero(~near & (first + at < last))
                if not len(rows):
                    break
                others = self._signatures[order[first[rows] + at]]
                near[rows] = similarity(signatures[rows], others) >= NEAR
        return near


def similarity(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Estimate the (N,) Jaccard similarities of N pairs of texts from two (N, SIGNATURE) arrays."""
    return np.asarray((first == second).mean(1))


def _merge(original: NDArray[np.int64], signatures: NDArray[np.uint8], columns: slice) -> None:
    """Update `original` with near duplicates among the texts that agree in the band `columns`."""
    # Texts that are known to repeat another one need not be compared.
    rows = np.flatnonzero(original == np.arange(len(original)))
    bucket = np.concatenate(
        [_pack(signatures[part, columns]) for part in _chunks(rows)] or [np.empty(0, np.uint64)]
    )
    for _ in range(_ROUNDS):
        _, first, inverse, count = np.unique(
            bucket, return_index=True, return_inverse=True, return_counts=True
        )
        alone = count[inverse] == 1
        # Each round compares with the first text of the bucket; those that are not near form the next round.
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
    """Return the columns of the bands in a signature."""
    return [slice(band * ROWS, (band + 1) * ROWS) for band in range(BANDS)]


def _pack(band: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Pack (N, ROWS) bytes of a band into (N,) integers, which can be compared quickly."""
    wide = np.zeros((len(band), 8), np.uint8)
    wide[:, :ROWS] = band
    return wide.view(np.uint64)[:, 0]


def _chunks(rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    return [rows[at : at + _CHUNK] for at in range(0, len(rows), _CHUNK)]
