"""Reading of text pairs (candidate, reference) from text files, JSON lines, CSV or TSV."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from simllm.errors import InputError
from simllm.io import reading
from simllm.io.tables import format_count

_DEEPEST = 100  # levels of nesting in an id; writing JSON needs a stack frame or two for each


class PairWithId(NamedTuple):
    """A pair of texts to score; the id is any JSON value, or None without the option `--id-field`."""

    candidate: str
    reference: str
    id: Any = None


@dataclass(frozen=True)
class PairSource:
    """A source of text pairs: the command line, two text files, or a file of JSON lines, CSV or TSV.

    Attributes:
        rows: A function that reads all pairs from the beginning; it works only once unless `repeatable`.
        files: The input files; empty if the texts stand on the command line.
        messages: Warnings about the input, which are known after the pairs were read.
    """

    rows: Callable[[], Iterator[PairWithId]]
    files: tuple[Path, ...]
    messages: list[str] = field(default_factory=list)

    @property
    def repeatable(self) -> bool:
        """True if the pairs can be read twice; False for standard input, pipes and devices."""
        return not any(reading.is_stdin(f) or f.is_fifo() or f.is_char_device() for f in self.files)


class EqualPairs:
    """A count of the pairs whose texts are equal, which are few if both texts come from different writers."""

    def __init__(self) -> None:
        self.pairs = self.equal = 0

    def count(self, pairs: Iterable[Sequence[str]]) -> None:
        """Add pairs, which begin with a candidate and its reference."""
        for candidate, reference, *_ in pairs:
            self.pairs += 1
            # Two blank texts are equal, but say nothing about the files.
            self.equal += candidate.split() == reference.split() != []

    def warnings(self) -> list[str]:
        """Return a warning if more than half of two or more pairs are equal."""
        if self.pairs < 2 or 2 * self.equal <= self.pairs:
            return []
        if self.equal == self.pairs:
            return [f"all {self.pairs:,} candidates are equal to their references; are they the same file?"]
        return [f"{self.equal:,} of {self.pairs:,} candidates are equal to their references"]


def from_files(candidates: Path, references: Path, messages: list[str]) -> Iterator[PairWithId]:
    """Read pairs from two files: line i of the first file and line i of the second are a pair.

    Blank lines at the end of both files are left out, with a warning in `messages`.
    """
    lengths = [0, 0]
    blank: list[PairWithId] = []  # pairs of blank lines, as long as no other pair follows
    for numbered in zip_longest(reading.read_lines(candidates), reading.read_lines(references)):
        lengths = [pair[0] if pair else length for pair, length in zip(numbered, lengths, strict=True)]
        if numbered[0] and numbered[1]:
            blank.append(PairWithId(numbered[0][1], numbered[1][1]))
            # Blank lines in the middle are pairs: somebody has written nothing there.
            if not is_blank(blank[-1][:2]):
                yield from blank
                blank = []
    for file, length in zip((candidates, references), lengths, strict=True):
        if not length:
            raise InputError(f"{file}: empty; expected one text per line")
    if lengths[0] != lengths[1]:
        count = format_count(lengths[0], "line")
        raise InputError(f"{candidates} has {count} but {references} has {lengths[1]:,}")
    if len(blank) == lengths[0]:
        raise InputError(f"{candidates} and {references}: all lines are blank")
    if blank and (message := about_blank_end(len(blank))) not in messages:
        messages.append(message)


def is_blank(texts: Iterable[str]) -> bool:
    """Return whether all texts are empty or white space."""
    return not any(text.strip() for text in texts)


def about_blank_end(lines: int) -> str:
    """Return the warning about the last lines of all files, which are blank and left out."""
    verb = "is" if lines == 1 else "are"
    return f"{format_count(lines, 'blank line')} at the end of all files {verb} left out"


def from_rows(
    file: Path, candidate_field: str, reference_field: str, id_field: str | None = None
) -> Iterator[PairWithId]:
    """Read pairs from JSON lines, CSV or TSV; without `id_field`, they have no ids."""
    where = ""
    for where, row in reading.rows(file, {candidate_field, reference_field, id_field or candidate_field}):
        id_ = None if id_field is None else reading.value_under(row, id_field, where)
        if _depth(id_) > _DEEPEST:
            raise InputError(f'{where}: expected at most {_DEEPEST} levels of nesting under "{id_field}"')
        candidate, reference = (reading.text_under(row, f, where) for f in (candidate_field, reference_field))
        yield PairWithId(candidate, reference, id_)
    if not where:
        raise InputError(f"{file}: empty; expected {reading.ROWS}")


def _depth(value: Any) -> int:
    """Return the depth of nesting of a JSON value: 0 for a text or number, 1 for a list of numbers."""
    depth, level = -1, [value]
    while level:
        depth += 1
        level = [
            part
            for value in level
            if isinstance(value, list | dict)
            for part in (value.values() if isinstance(value, dict) else value)
        ]
    return depth


def shown_id(row: PairWithId, format_: str | None) -> list[Any]:
    """Return the cell with a pair's id for a table of a format, in a list; no cell if `format_` is None."""
    if format_ is None:
        return []
    return [row.id if format_ == "json" or isinstance(row.id, str) else json.dumps(row.id)]
