"""Pairs of comments that mean the same: on two versions of a function, or on a method and its override."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simllm.code.languages.language import LANGUAGE_OF_SUFFIX, Function
from simllm.errors import InputError
from simllm.io.packages import missing_package
from train.corpus.comments import Comment
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.extract import clean_texts, extract, make_comment
from train.corpus.parts import PartWriter, Tallies, Tally
from train.corpus.sources import Docstring, Item


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


def make_part(data: bytes, file: Path, excluded: ExcludedTexts) -> None:
    """Write the part of a batch; `data` is the pickled pair of the source's name and the batch."""
    # Safe: pickled by the same run, never read from disk.
    source, batch = pickle.loads(data)
    tallies, part = Tallies(), PartWriter()
    for item in batch:
        for comment, single in _comments(item, tallies):
            row = clean_texts(comment, excluded, tallies.texts)
            if row.texts:
                part.add(comment, row, single)
    part.write(file, {"source": source, "found": tallies.facts()})


def _comments(item: Item, tallies: Tallies) -> Iterator[tuple[Comment, bool]]:
    """Yield the comments of an item, each with whether its function's name is unique in the source file."""
    if isinstance(item, Comment):
        yield item, False
        return
    if isinstance(item, Docstring):
        yield from ((comment, False) for comment in _from_docstring(item, tallies.comments))
        return
    tallies.files.counts["read"] += 1
    tallies.files.counts["bytes"] += len(item.data)
    comments = []
    try:
        for comment in extract(
            item.data, item.language, tallies.comments.counts, tallies.comments.add_example
        ):
            comments.append(comment)
    except ImportError as error:
        raise InputError(f"{item.language}: {missing_package(error.name, 'code')}") from None
    # An unusual file may break a parser; the other files are read.
    except Exception as error:
        where = f"{item.repository}: {item.path}"
        tallies.files.add("unreadable code", f"{where}: {type(error).__name__}: {error}")
    names = Counter(comment.function for comment in comments)
    for comment in comments:
        placed = replace(comment, path=item.path, repository=item.repository, licence=item.licence)
        yield placed, bool(comment.function) and names[comment.function] == 1


def _from_docstring(item: Docstring, tally: Tally) -> Iterator[Comment]:
    """Yield the comment, unless a filter rejects it or its language is unknown."""
    if item.language not in LANGUAGE_OF_SUFFIX.values():
        tally.add(f"of {item.language or 'no language'}", item.text)
        return
    function = Function(item.function, item.text, item.text, head="")
    if comment := make_comment(function, item.language, tally.add):
        yield replace(comment, path=item.path, repository=item.repository)
