"""Reading of the sources of a corpus: folders with source code, files with comments, data sets by name."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io.printable_path import printable
from simllm.io.read_json_lines import objects, parsed, text_under
from simllm.io.read_lines import lines
from train.corpus import corpus_folder, hugging_face_data, source_trees
from train.corpus.function_comment import Comment
from train.corpus.skip_counts import Tally
from train.corpus.source_trees import Code

INSTALLED_PYTHON = "installed-python"
_FIELDS = [field.name for field in fields(Comment)]
_TEXT_COLUMNS = {"docstring", "summary", "text"}


@dataclass(frozen=True)
class Docstring:
    """The raw documentation of a function, without the function's code.

    Attributes:
        text: The documentation.
        language: The programming language.
        function: The name of the function.
        path: The path of the source file in the repository.
        repository: The name of the repository.
    """

    text: str
    language: str
    function: str
    path: str
    repository: str


Item = Code | Docstring | Comment


def read(source: str, tags: int, tally: Tally, allow_download: bool = False) -> Iterator[Item]:
    """Read a source of the corpus: yield its source files, docstrings or comments.

    A folder with code, a git repository and `installed-python` give source files. A corpus folder and a file
    give docstrings or comments. A data set may give all three.

    Args:
        source: A path or glob pattern, `hf:NAME` for a data set (see `train.corpus.hugging_face_data`), or
            `installed-python` for the Python modules on this machine. A path names a folder with code, a git
            repository, a corpus folder, a file of JSON lines (`*.jsonl`) or a file of plain lines (any other
            name). A file is gzipped if its name ends in `.gz`.
        tags: Number of tagged revisions to read from git repositories, besides the current commit.
        tally: Counter of files that are left out; it is updated.
        allow_download: Whether a data set may be downloaded.

    Raises:
        InputError: No file or folder matches `source`, or a data set cannot be read.
    """
    if source.startswith(hugging_face_data.PREFIX):
        yield from _data_set(source, tally, allow_download)
        return
    if source == INSTALLED_PYTHON:
        yield from source_trees.read_installed_python(tally)
    for path in match_files(source):
        if path.is_dir() and not corpus_folder.read_facts(path):
            yield from source_trees.read_folder(path, tags, tally)
            continue
        if str(path) != source and not (path.is_dir() or path.is_file()):
            tally.add("no file", printable(path))  # a pipe or a device
            continue
        try:
            yield from _texts(path / corpus_folder.COMMENTS if path.is_dir() else path, tally)
        except InputError as error:
            tally.add("unreadable file", str(error))


def match_files(pattern: str) -> list[Path]:
    """Return the files and folders that match a path or glob pattern, sorted.

    An existing path is not treated as a pattern, even if it has special characters. The argument may also be
    `installed-python`, the name for the Python modules on this machine. Then the list is empty, because this
    name is neither a path nor a pattern.

    Raises:
        InputError: Nothing matches, or the argument is the name of a data set (`hf:NAME`), not a path.
    """
    if pattern == INSTALLED_PYTHON:
        return []
    if pattern.startswith(hugging_face_data.PREFIX):
        raise InputError(f"source {pattern!r}: expected a path; only comments and pairs come from data sets")
    if os.path.lexists(pattern):
        return [Path(pattern)]
    files = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 (Path.glob takes no absolute pattern)
    if not files:
        raise InputError(f"source {pattern!r}: no such file")
    return [Path(file) for file in files]


def source_paths(source: str) -> list[Path]:
    """Return the local files and folders from which one source of a corpus is read.

    Args:
        source: A path or glob pattern, `hf:NAME` for a data set, or `installed-python` for the folders of
            Python's standard library and of the installed packages.

    Returns:
        The files and folders. The list is empty for a data set that is on the Hugging Face hub.

    Raises:
        InputError: Nothing matches.
    """
    if source.startswith(hugging_face_data.PREFIX):
        folder = hugging_face_data.parse_source(source).folder
        return [folder] if folder else []
    return list(source_trees.installed_folders()) if source == INSTALLED_PYTHON else match_files(source)


def rows(source: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of JSON-lines files, or of a data set in a local folder; a row is a dict.

    Args:
        source: A path or glob pattern of JSON-lines files, or `hf:FOLDER` for a data set in `FOLDER`.

    Yields:
        The location of the row (such as the file and line), for error messages, and the row.

    Raises:
        InputError: Nothing matches, or a row cannot be read.
    """
    if source.startswith(hugging_face_data.PREFIX):
        yield from hugging_face_data.rows(hugging_face_data.parse_source(source))
        return
    for file in match_files(source):
        yield from objects(file)


def input_files(source: str) -> list[Path]:
    """Return the paths of the files that contain the data of a source, sorted.

    The source consists of JSON-lines files, or is a data set in a local folder.

    Args:
        source: A path or glob pattern of JSON-lines files, or `hf:FOLDER` for a data set in `FOLDER`.

    Raises:
        InputError: No file matches, or there is no such folder.
    """
    if source.startswith(hugging_face_data.PREFIX):
        return hugging_face_data.data_files(hugging_face_data.parse_source(source))
    return match_files(source)


def _data_set(source: str, tally: Tally, allow_download: bool) -> Iterator[Item]:
    """Yield a source file, docstring or comment for each row of a data set of Hugging Face `datasets`.

    If the user named a column, the text in this column is yielded as a comment. Otherwise, the columns of the
    row decide: code in the column `content` gives a source file, `docstring` gives a docstring, and `summary`
    or `text` gives a comment. A row with an unusable value is left out.

    Args:
        source: The data set, as `hf:NAME[:CONFIG][:SPLIT][#COLUMN]`. NAME is a local folder, or a data set of
            the Hugging Face hub.
        tally: Counter of rows that are left out; it is updated.
        allow_download: Whether a data set may be downloaded.
    """
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
    """Yield a docstring or a comment for each line of a file of JSON lines (`*.jsonl`) or plain lines.

    A JSON object with the key `docstring` becomes a docstring. One with the key `summary` or `text` becomes a
    comment. A plain line is one comment. Invalid lines are skipped, and counted in `tally`.
    """
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
    """Convert a JSON object into a docstring or a comment.

    An object with the key `docstring` (as in the data set CodeSearchNet) becomes a docstring: raw
    documentation, whose markup must still be removed. An object with the key `summary` (as in a corpus) or
    `text` becomes a comment: plain text.

    Args:
        row: The object.
        where: The place of the object, such as file and line, for error messages.

    Raises:
        InputError: The object has no text under these keys, or it has a docstring but no `language`.
    """
    if "docstring" in row:
        text, language = text_under(row, "docstring", where), text_under(row, "language", where)
        return Docstring(text, language, *(str(row.get(key, "")) for key in ("func_name", "path", "repo")))
    values = {name: str(row[name]) for name in _FIELDS if row.get(name) is not None}
    return Comment(**{"summary": text_under(row, "summary" if "summary" in row else "text", where)} | values)
