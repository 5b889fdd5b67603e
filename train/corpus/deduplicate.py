"""Finds texts that repeat another one: word for word, or nearly, by MinHash."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from rensa import RMinHash

from train.corpus.text_identity import words

BANDS, ROWS = 12, 5  # texts that share 90% of their word pairs all but surely agree in a band
SIGNATURE = BANDS * ROWS
NEAR = 0.9  # share of word pairs, estimated; from here on texts are near
SHORT = 20  # words; in a shorter text, one that differs ("rows", "columns") may be all that counts
_ROUNDS = 16  # different texts that a text of its band is compared with
_CHUNK = 1 << 18  # signatures compared at once
_COMPARED = 100  # texts of a set that a text is compared with in each band


def signature(text: str) -> NDArray[np.uint8]:
    """Return (SIGNATURE,) bytes of a cleaned text; two texts share as large a part of them as of word pairs.

    The lowest byte of each minimum hash is enough, and memory for more is better spent on
    more hashes. A short text is of one piece, and near to nothing else.
    """
    found, sketch = words(text), RMinHash(num_perm=SIGNATURE, seed=1)
    sketch.update([f"{a} {b}" for a, b in pairwise(found)] if len(found) >= SHORT else [" ".join(found)])
    return np.array(sketch.digest(), np.uint32).astype(np.uint8)


def originals(identities: NDArray[np.uint64], signatures: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return for each of N texts the first text that it repeats, and for a new text its own index.

    Takes (N,) identities and (N, SIGNATURE) signatures, which may lie on the disk.
    """
    _, first, inverse = np.unique(identities, return_index=True, return_inverse=True)
    original = first[inverse]
    for columns in _bands():
        _merge(original, signatures, columns)
    while (original[original] != original).any():  # an original may have turned out to repeat another
        original = original[original]
    return original


class Near:
    """Finds texts that are equal or near to one of a set of texts."""

    def __init__(self, signatures: NDArray[np.uint8]) -> None:
        """Take the (M, SIGNATURE) signatures of the set."""
        self._signatures = signatures
        buckets = [_packed(signatures[:, columns]) for columns in _bands()]
        self._order = [np.argsort(bucket).astype(np.uint32) for bucket in buckets]
        self._sorted = [bucket[order] for bucket, order in zip(buckets, self._order, strict=True)]

    def __call__(self, signatures: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Return (N,) whether each text is near to one of the set, for (N, SIGNATURE) signatures.

        A text that agrees in a band with more texts of the set than are compared counts as near.
        """
        near = np.zeros(len(signatures), bool)
        for start in range(0, len(signatures), _CHUNK):
            near[start : start + _CHUNK] = self._near(np.asarray(signatures[start : start + _CHUNK]))
        return near

    def _near(self, signatures: NDArray[np.uint8]) -> NDArray[np.bool_]:
        near = np.zeros(len(signatures), bool)
        for columns, order, bucket in zip(_bands(), self._order, self._sorted, strict=True):
            wanted = _packed(signatures[:, columns])
            first, last = (np.searchsorted(bucket, wanted, side) for side in ("left", "right"))
            near |= last - first > _COMPARED
            for at in range(_COMPARED):
                rows = np.flatnonzero(~near & (first + at < last))
                if not len(rows):
                    break
                others = self._signatures[order[first[rows] + at]]
                near[rows] = similarity(signatures[rows], others) >= NEAR
        return near


def similarity(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return (N,) estimated shares of common word pairs, from (N, SIGNATURE) and (N, SIGNATURE)."""
    return np.asarray((first == second).mean(1))


def _merge(original: NDArray[np.int64], signatures: NDArray[np.uint8], columns: slice) -> None:
    """Compare the texts that agree in these columns; those near an earlier one point to it."""
    rows = np.flatnonzero(original == np.arange(len(original)))
    bucket = np.concatenate(
        [_packed(signatures[part, columns]) for part in _parts(rows)] or [np.empty(0, np.uint64)]
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
                for a, b in zip(_parts(rows), _parts(head), strict=True)
            ]
        )
        original[rows[near]] = head[near]
        rows, bucket = rows[~near], bucket[~near]


def _bands() -> list[slice]:
    return [slice(band * ROWS, (band + 1) * ROWS) for band in range(BANDS)]


def _packed(band: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """(N,) integers of (N, ROWS) bytes."""
    wide = np.zeros((len(band), 8), np.uint8)
    wide[:, :ROWS] = band
    return wide.view(np.uint64)[:, 0]


def _parts(rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    return [rows[at : at + _CHUNK] for at in range(0, len(rows), _CHUNK)]
