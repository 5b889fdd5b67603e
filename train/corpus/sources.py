"""The sources of a corpus and of training data: what a user's path, pattern or `hf:NAME` stands for."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io.reading import objects, parsed, read_lines, text_under
from simllm.io.tables import printable
from train.corpus import config, hugging_face_data, source_trees
from train.corpus.comments import Comment
from train.corpus.parts import Tally
from train.corpus.source_trees import Code

Values = Mapping[str, tuple[str, ...]]  # values by field name, such as {"label": ("same",)}


def select_rows(source: str, only: Values, leave_out: Values) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of a source, with their locations, whose fields have allowed and no forbidden values.

    `source` is a path or glob pattern of JSON lines, or `hf:FOLDER`. A row without a field of `only` is left
    out.
    """
    for where, row in rows(source):
        has_values = all(row.get(name) in values for name, values in only.items())
        if has_values and not any(row.get(name) in values for name, values in leave_out.items()):
            yield where, row


INSTALLED_PYTHON = "installed-python"
_FIELDS = [field.name for field in fields(Comment)]
_TEXT_COLUMNS = {"docstring", "summary", "text"}


@dataclass(frozen=True)
class Docstring:
    """The raw documentation of a function, without the function's code; `path` is in the repository."""

    text: str
    language: str
    function: str
    path: str
    repository: str


Item = Code | Docstring | Comment


def read(source: str, tags: int, tally: Tally, allow_download: bool = False) -> Iterator[Item]:
    """Yield the items of a source.

    `source` is `hf:NAME`, `installed-python`, or a path or glob pattern of folders with code, git
    repositories, finished corpora, JSON lines (`*.jsonl`) or plain lines (any other name). Names in `.gz` are
    gzipped.
    """
    if source.startswith(hugging_face_data.PREFIX):
        yield from _data_set(source, tally, allow_download)
        return
    if source == INSTALLED_PYTHON:
        yield from source_trees.read_installed_python(tally)
    for path in match_files(source):
        if path.is_dir() and not config.read_facts(path):
            yield from source_trees.read_folder(path, tags, tally)
            continue
        if str(path) != source and not (path.is_dir() or path.is_file()):
            # A pipe or a device.
            tally.add("no file", printable(path))
            continue
        try:
            yield from _texts(path / config.COMMENTS if path.is_dir() else path, tally)
        except InputError as error:
            tally.add("unreadable file", str(error))


def match_files(pattern: str) -> list[Path]:
    """Return the sorted files and folders that match a path or glob pattern; none for `installed-python`.

    Raises InputError if nothing matches, or for the name of a data set.
    """
    if pattern == INSTALLED_PYTHON:
        return []
    if pattern.startswith(hugging_face_data.PREFIX):
        raise InputError(f"source {pattern!r}: expected a path; only comments and pairs come from data sets")
    # An existing path is not a pattern, even if it has special characters.
    if os.path.lexists(pattern):
        return [Path(pattern)]
    files = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 (Path.glob takes no absolute pattern)
    if not files:
        raise InputError(f"source {pattern!r}: no such file")
    return [Path(file) for file in files]


def source_paths(source: str) -> list[Path]:
    """Return the local files and folders of a source; none for a data set on the hub."""
    if source.startswith(hugging_face_data.PREFIX):
        folder = hugging_face_data.parse_source(source).folder
        return [folder] if folder else []
    return list(source_trees.installed_folders()) if source == INSTALLED_PYTHON else match_files(source)


def rows(source: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of JSON-lines files or of `hf:FOLDER`, each with its location for error messages."""
    if source.startswith(hugging_face_data.PREFIX):
        yield from hugging_face_data.rows(hugging_face_data.parse_source(source))
        return
    for file in match_files(source):
        yield from objects(file)


def input_files(source: str) -> list[Path]:
    """Return the sorted files of a source of JSON lines or of `hf:FOLDER`."""
    if source.startswith(hugging_face_data.PREFIX):
        return hugging_face_data.data_files(hugging_face_data.parse_source(source))
    return match_files(source)


def _data_set(source: str, tally: Tally, allow_download: bool) -> Iterator[Item]:
    """Yield an item for each row of a data set; a row with an unusable value is left out."""
    named = hugging_face_data.parse_source(source)
    for item in hugging_face_data.read_code_or_texts(named, tally, allow_download):
        if isinstance(item, Code | Comment):
            yield item
            continue
        if not item.keys() & _TEXT_COLUMNS:
            raise InputError(
                f"source {source!r}: has the columns {', '.join(item)}; name one: {source}#COLUMN"
            )
        try:
            yield _comment(item, source)
        except InputError as error:
            tally.add("row without a text", str(error))


def _texts(file: Path, tally: Tally) -> Iterator[Docstring | Comment]:
    """Yield a docstring or a comment for each line of a file; invalid lines are counted."""
    for number, line in read_lines(file):
        if ".jsonl" not in file.suffixes:
            yield Comment(line)
            continue
        where = f"{file}, line {number}"
        try:
            yield _comment(parsed(line, where), where)
        except InputError as error:
            tally.add("unreadable line", str(error))


def _comment(row: dict[str, Any], where: str) -> Docstring | Comment:
    """Convert a row with `docstring` to a docstring, and one with `summary` or `text` to a comment."""
    if "docstring" in row:
        text, language = text_under(row, "docstring", where), text_under(row, "language", where)
        return Docstring(text, language, *(str(row.get(key, "")) for key in ("func_name", "path", "repo")))
    values = {name: str(row[name]) for name in _FIELDS if row.get(name) is not None}
    return Comment(**{"summary": text_under(row, "summary" if "summary" in row else "text", where)} | values)
