"""Pairs of comments that mean the same: on two versions of a function, or on a method and its override."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


class PairFinder:
    """Finder of pairs of comments that mean the same.

    The two comments of a pair are on two versions of a function, or on a method and the method that it
    overrides. Pairs with equal summaries are left out. The constructor finds the pairs by hashes, without the
    texts. Then the caller passes the summaries of the comments one by one to `complete_pairs`, which yields
    the pairs. To save memory, a summary is stored only until its last pair is complete.

    Args:
        keys: (R,) structured array of type `part_file.KEYS`, with three hashes for each of R comments. A hash
            is 0 if it is unknown or missing.

            - `summary`: hash of the text of the comment's summary (first sentence).
            - `function`: hash of the repository, path and full name of the commented function; 0 if this name
              is not unique in the file.
            - `name`: hash of the repository, class and name of the commented method.
        overrides: Structured array of type `part_file.OVERRIDES`. A commented method has one entry for each
            direct supertype of its class. `row` is the index of the comment in `keys`. `name` is the hash of
            the repository, the supertype and the method's name. If the supertype has a method of this name,
            the commented method overrides it.
    """

    def __init__(self, keys: NDArray[np.void], overrides: NDArray[np.void]) -> None:
        pairs = [_versions(keys), _overrides(keys, overrides)]
        rows, kind = np.concatenate(pairs), np.repeat([0, 1], [len(some) for some in pairs])
        differ = keys["summary"][rows[:, 0]] != keys["summary"][rows[:, 1]]
        rows, kind = rows[differ], kind[differ]
        order = np.argsort(rows.max(1, initial=0), kind="stable")
        self._rows, self._kind = rows[order], kind[order]
        self._uses = np.bincount(rows.ravel(), minlength=len(keys))
        self._held: dict[int, str] = {}
        self._next = 0

    def complete_pairs(self, row: int, text: str) -> Iterator[tuple[str, str, str]]:
        """Store the summary (first sentence) of one comment, and yield the pairs that this comment completes.

        The constructor has already found out which comments form pairs. Call this method once for each
        comment, in order. A pair is yielded as soon as the summaries of both its comments are known.

        Args:
            row: The number of the comment: 0 in the first call, 1 in the second, and so on.
            text: The summary of the comment.

        Yields:
            The two summaries of a pair, and the kind of pair. The kind is "version" if the comments are on
            two versions of a function. It is "override" if they are on a method and the method that it
            overrides.
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
    """Pair the comments on successive versions of each function.

    Two functions count as versions of one function if they have the same repository, path and name. Each
    comment is paired with the next comment on the same function, in the order of `keys`.

    Args:
        keys: (R,) structured array with hashes for each of R comments. `function` is a hash of the function's
            repository, path and name. `summary` is a hash of the summary. A hash is 0 if it is unknown or
            missing. A comment with a hash of 0 is skipped.

    Returns:
        (P, 2) for each of P pairs, the indices of its two comments in `keys`.
    """
    rows = np.flatnonzero((keys["function"] != 0) & (keys["summary"] != 0))
    rows = rows[np.argsort(keys["function"][rows], kind="stable")]
    same = keys["function"][rows[1:]] == keys["function"][rows[:-1]]
    return np.stack([rows[:-1][same], rows[1:][same]], 1)


def _overrides(keys: NDArray[np.void], overrides: NDArray[np.void]) -> NDArray[np.int64]:
    """Pair the comment on each overriding method with the comment on the overridden method.

    If there are several comments on the overridden method, the first in `keys` is used.

    Args:
        keys: (R,) structured array with hashes for each of R comments. `name` is a hash of the method's
            repository, class and name. `summary` is a hash of the summary. A hash is 0 if it is unknown or
            missing. A comment whose `summary` is 0 is not paired. A comment whose `name` is 0 is not found
            as the comment on an overridden method.
        overrides: Structured array. A commented method has one entry for each direct supertype of its class.
            `row` is the index of the comment in `keys`. `name` is the hash of the repository, the supertype
            and the method's name. If the supertype has a method of this name, the commented method overrides
            it.

    Returns:
        (P, 2) for each of P pairs, the index in `keys` of the comment on the overriding method, then the
        index of the comment on the overridden method.
    """
    has_name = np.flatnonzero((keys["summary"] != 0) & (keys["name"] != 0))
    names, first = np.unique(keys["name"][has_name], return_index=True)
    rows = overrides["row"].astype(np.int64)
    exists = (keys["summary"][rows] != 0) & np.isin(overrides["name"], names)
    overridden = has_name[first[np.searchsorted(names, overrides["name"][exists])]]
    return np.stack([rows[exists], overridden], 1)
