"""Pairs of comments that mean the same: of two versions of a function, or of a method and its override."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


class Pairs:
    """Pairs of comments, found by the comments' keys; their texts are collected one comment at a time."""

    def __init__(self, keys: NDArray[np.void], overrides: NDArray[np.void]) -> None:
        """Take (R,) of `part.KEYS` and any number of `part.OVERRIDES`."""
        found = [_versions(keys), _overrides(keys, overrides)]
        rows, kind = np.concatenate(found), np.repeat([0, 1], [len(pairs) for pairs in found])
        differ = keys["summary"][rows[:, 0]] != keys["summary"][rows[:, 1]]
        rows, kind = rows[differ], kind[differ]
        order = np.argsort(rows.max(1, initial=0), kind="stable")
        self._rows, self._kind = rows[order], kind[order]
        self._uses = np.bincount(rows.ravel(), minlength=len(keys))
        self._held: dict[int, str] = {}
        self._next = 0

    def meet(self, row: int, text: str) -> Iterator[tuple[str, str, str]]:
        """Take the next comment; yield (a, b, kind) for the pairs that are complete with it."""
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
    """Return (P, 2) rows: each version of a function and the next one."""
    rows = np.flatnonzero((keys["function"] != 0) & (keys["summary"] != 0))
    rows = rows[np.argsort(keys["function"][rows], kind="stable")]
    same = keys["function"][rows[1:]] == keys["function"][rows[:-1]]
    return np.stack([rows[:-1][same], rows[1:][same]], 1)


def _overrides(keys: NDArray[np.void], overrides: NDArray[np.void]) -> NDArray[np.int64]:
    """Return (P, 2) rows: a function, and the first function of the name that it overrides."""
    named = np.flatnonzero((keys["summary"] != 0) & (keys["name"] != 0))
    names, first = np.unique(keys["name"][named], return_index=True)
    rows = overrides["row"].astype(np.int64)
    there = (keys["summary"][rows] != 0) & np.isin(overrides["name"], names)
    return np.stack([rows[there], named[first[np.searchsorted(names, overrides["name"][there])]]], 1)
