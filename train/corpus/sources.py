"""Readers of sources: each gives files of code, or comments, one by one."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io.files import lines, parsed, printable, text_under
from train.corpus import finished, trees
from train.corpus.comment import Comment
from train.corpus.tally import Tally
from train.corpus.trees import Code

INSTALLED_PYTHON = "installed-python"
_KNOWN = [field.name for field in fields(Comment)]


@dataclass(frozen=True)
class Docstring:
    """The documentation of a function as it was written; the code is not there."""

    text: str
    language: str
    function: str
    path: str
    repository: str


Item = Code | Docstring | Comment


def read(source: str, tags: int, tally: Tally) -> Iterator[Item]:
    """Yield the files of code, or the comments, in a source.

    A source is a path or glob pattern of folders of source trees, git repositories, built
    corpora, JSON lines (`*.jsonl`) or plain lines (any other file), gzipped if the name
    ends in `.gz`; or `installed-python`, the Python modules on this machine. Unreadable files
    are counted in `tally`. Raises InputError only if nothing has that name.
    """
    if source == INSTALLED_PYTHON:
        yield from trees.installed_python(tally)
    for path in match_files(source):
        if path.is_dir() and not finished.facts(path):
            yield from trees.folder(path, tags, tally)
            continue
        if str(path) != source and not (path.is_dir() or path.is_file()):
            tally.add("no file", printable(path))  # a pipe that nobody writes to, or a device
            continue
        try:
            yield from _texts(path / finished.COMMENTS if path.is_dir() else path, tally)
        except InputError as error:
            tally.add("unreadable file", str(error))


def match_files(pattern: str) -> list[Path]:
    """Return the files that a path or a glob pattern names, sorted.

    An existing path is taken as it is, whatever characters it has. Raises InputError if there is
    no such file.
    """
    if pattern == INSTALLED_PYTHON:
        return []
    if os.path.lexists(pattern):
        return [Path(pattern)]
    files = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 (Path.glob takes no absolute pattern)
    if not files:
        raise InputError(f"source {pattern!r}: no such file")
    return [Path(file) for file in files]


def check(source: str) -> list[Path]:
    """Return the files and folders that a source reads; raise InputError if there is none."""
    return list(trees.installed_folders()) if source == INSTALLED_PYTHON else match_files(source)


def _texts(file: Path, tally: Tally) -> Iterator[Docstring | Comment]:
    for number, line in lines(file):
        if ".jsonl" not in file.suffixes:
            yield Comment(line)
            continue
        where = f"{file}, line {number}"
        try:
            yield _comment(parsed(line, where), where)
        except InputError as error:
            tally.add("unreadable line", str(error))


def _comment(row: dict[str, Any], where: str) -> Docstring | Comment:
    """A comment out of a line of JSON: of CodeSearchNet, of a corpus, or any other with a text."""
    if "docstring" in row:
        text, language = text_under(row, "docstring", where), text_under(row, "language", where)
        return Docstring(text, language, *(str(row.get(key, "")) for key in ("func_name", "path", "repo")))
    known = {name: str(row[name]) for name in _KNOWN if row.get(name) is not None}
    return Comment(**{"summary": text_under(row, "summary" if "summary" in row else "text", where)} | known)
