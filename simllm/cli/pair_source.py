"""Reading of pairs, candidate and reference, from the command line, text files or JSON lines."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from simllm.errors import InputError
from simllm.io import files
from simllm.text import encodable

_DEEPEST = 100  # levels of an id; writing it as JSON needs a stack frame or two for each


class Row(NamedTuple):
    """A pair and its id; None without `--id-field`."""

    candidate: str
    reference: str
    id: Any = None


@dataclass(frozen=True)
class Source:
    """A source of pairs; `rows` reads them from the start, and can do so again if `repeatable`."""

    rows: Callable[[], Iterator[Row]]
    files: tuple[Path, ...]

    @property
    def repeatable(self) -> bool:
        """Whether the files can be read more than once: not standard input, a pipe or a device."""
        return not any(files.is_stdin(f) or f.is_fifo() or f.is_char_device() for f in self.files)


def source(options: argparse.Namespace) -> Source:
    """Return the source of pairs that the command line names; raise InputError unless it names one."""
    two_files = options.candidates is not None or options.references is not None
    if sum([bool(options.texts), two_files, options.jsonl is not None]) != 1:
        raise InputError("expected either two texts, or -c FILE -r FILE, or --jsonl FILE")
    if options.jsonl is None and options.id_field is not None:
        raise InputError("--id-field goes with --jsonl")
    if options.jsonl is not None:
        fields = (options.candidate_field, options.reference_field, options.id_field)
        return Source(lambda: from_jsonl(options.jsonl, *fields), (options.jsonl,))
    if two_files:
        if options.candidates is None or options.references is None:
            raise InputError("-c and -r go together: a file of candidates, a file of references")
        both = options.candidates, options.references
        if str(both[0]) == str(both[1]) == "-":
            raise InputError("-c - and -r -: standard input can be one of them only")
        return Source(lambda: from_files(*both), both)
    if len(options.texts) != 2:
        raise InputError(f"expected two texts, a candidate and a reference; got {len(options.texts)}")
    return Source(lambda: iter([Row(*map(encodable, options.texts))]), ())


def from_files(candidates: Path, references: Path) -> Iterator[Row]:
    """Read two text files, one text a line; raise InputError if their lengths differ."""
    lengths = [0, 0]
    for numbered in zip_longest(files.lines(candidates), files.lines(references)):
        lengths = [pair[0] if pair else length for pair, length in zip(numbered, lengths, strict=True)]
        if numbered[0] and numbered[1]:
            yield Row(numbered[0][1], numbered[1][1])
    for file, length in zip((candidates, references), lengths, strict=True):
        if not length:
            raise InputError(f"{file}: empty; expected one text a line")
    if lengths[0] != lengths[1]:
        raise InputError(f"{candidates} has {lengths[0]} lines but {references} has {lengths[1]}")


def from_jsonl(
    file: Path, candidate_field: str, reference_field: str, id_field: str | None = None
) -> Iterator[Row]:
    """Read the named fields of every line of a JSON-lines file: two texts, and any JSON value as id."""
    where = ""
    for where, row in files.objects(file):
        id_ = None if id_field is None else files.value_under(row, id_field, where)
        if _depth(id_) > _DEEPEST:
            raise InputError(f'{where}: expected at most {_DEEPEST} levels of nesting under "{id_field}"')
        candidate, reference = (files.text_under(row, f, where) for f in (candidate_field, reference_field))
        yield Row(candidate, reference, id_)
    if not where:
        raise InputError(f"{file}: empty; expected a JSON object a line")


def _depth(value: Any) -> int:
    """Return how many levels of lists and objects a JSON value has."""
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


def shown_id(row: Row, format_: str | None) -> list[Any]:
    """Return the id of a pair as a table shows it, in a list; an empty list for no format.

    JSON keeps the type of an id. In text and TSV an id that is no text is written as JSON.
    """
    if format_ is None:
        return []
    return [row.id if format_ == "json" or isinstance(row.id, str) else json.dumps(row.id)]
