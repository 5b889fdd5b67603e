"""Readers: every source gives files of code, or comments, one by one."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io.files import lines, parsed, text_under
from train.corpus import trees
from train.corpus.comment import Comment
from train.corpus.tally import Tally
from train.corpus.trees import Code

INSTALLED_PYTHON = "installed-python"
COMMENTS = "comments.jsonl"  # of a corpus
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
    """Yield what a source holds.

    A source is a path or glob pattern of folders of source trees, git repositories, built
    corpora, JSON lines (`*.jsonl`) or plain lines (any other file), gzipped where the name
    ends in `.gz`; or `installed-python`, the Python modules on this machine. What cannot be
    read is counted in `tally`; raises InputError only where there is nothing of that name.
    """
    if source == INSTALLED_PYTHON:
        yield from trees.installed_python(tally)
    for path in matching(source):
        if path.is_dir() and not (path / COMMENTS).is_file():
            yield from trees.folder(path, tags, tally)
            continue
        try:
            yield from _texts(path / COMMENTS if path.is_dir() else path, tally)
        except InputError as error:
            tally.add("unreadable file", str(error))


def matching(pattern: str) -> list[Path]:
    """The files that a pattern names, sorted; raise InputError where there is none."""
    if pattern == INSTALLED_PYTHON:
        return []
    files = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 (Path.glob takes no absolute pattern)
    if not files:
        raise InputError(f"source {pattern!r}: no such file")
    return [Path(file) for file in files]


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
