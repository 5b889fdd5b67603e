"""Pairs of comments that mean the same: on two versions of a function, or on a method and its override."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


class PairFinder:
    """Finder of pairs of comments that mean the same, by hashes and without the texts.

    Pairs with equal summaries are left out. `keys` is an (R,) array of type `part_file.KEYS` with three
    hashes of each comment (0 if unknown); `overrides` is an array of type `part_file.OVERRIDES`.
    """

    def __init__(self, keys: NDArray[np.void], overrides: NDArray[np.void]) -> None:
        pairs = [_versions(keys), _overrides(keys, overrides)]
        rows, kind = np.concatenate(pairs), np.repeat([0, 1], [len(some) for some in pairs])
        differ = keys["summary"][rows[:, 0]] != keys["summary"][rows[:, 1]]
        rows, kind = rows[differ], kind[differ]
        # By the later comment of each pair, which completes the pair.
        order = np.argsort(rows.max(1, initial=0), kind="stable")
        self._rows, self._kind = rows[order], kind[order]
        # A summary is stored only until its last pair is complete, to save memory.
        self._uses = np.bincount(rows.ravel(), minlength=len(keys))
        self._held: dict[int, str] = {}
        self._next = 0

    def complete_pairs(self, row: int, text: str) -> Iterator[tuple[str, str, str]]:
        """Take the summary of comment `row`, and yield the pairs that it completes, with "version" or
        "override".

        Must be called for each comment, in order.
        """
        if self._uses[row]:
            self._held[row] = text
        while self._next < len(self._rows) and self._rows[self._next].max() == row:
            first, second = map(int, self._rows[self._next])
            yield self._held[first], self._held[second], ("version", "override")[self._kind[self._next]]
            for used in (first, second):
                self._uses[used] -= 1
                if not self._uses[used]:
                    del self._held[used]
            self._next += 1


def _versions(keys: NDArray[np.void]) -> NDArray[np.int64]:
    """Pair each comment with the next one on the same repository, path and name: (P, 2) rows of `keys`."""
    rows = np.flatnonzero((keys["function"] != 0) & (keys["summary"] != 0))
    rows = rows[np.argsort(keys["function"][rows], kind="stable")]
    same = keys["function"][rows[1:]] == keys["function"][rows[:-1]]
    return np.stack([rows[:-1][same], rows[1:][same]], 1)


def _overrides(keys: NDArray[np.void], overrides: NDArray[np.void]) -> NDArray[np.int64]:
    """Pair each overriding method with the overridden one: (P, 2) rows of `keys`."""
    has_name = np.flatnonzero((keys["summary"] != 0) & (keys["name"] != 0))
    # If there are several comments on the overridden method, the first is used.
    names, first = np.unique(keys["name"][has_name], return_index=True)
    rows = overrides["row"].astype(np.int64)
    exists = (keys["summary"][rows] != 0) & np.isin(overrides["name"], names)
    overridden = has_name[first[np.searchsorted(names, overrides["name"][exists])]]
    return np.stack([rows[exists], overridden], 1)
