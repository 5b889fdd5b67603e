"""Readers: every source gives raw comment texts, one by one."""

from __future__ import annotations

import ast
import glob
import gzip
import json
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simllm.errors import InputError

INSTALLED_PYTHON = "installed-python"


def read(source: str) -> Iterator[str]:
    """Yield the texts of a source.

    A source is a file or glob pattern of JSON lines (`*.jsonl`, field `text`) or plain lines
    (anything else), gzipped where the name ends in `.gz`; or `installed-python`, the
    documentation of the Python modules installed on this machine.
    """
    if source == INSTALLED_PYTHON:
        yield from installed_python()
        return
    files = sorted(glob.glob(source))  # noqa: PTH207 (Path.glob takes no absolute pattern)
    if not files:
        raise InputError(f"corpus source {source!r}: no such file")
    for file in files:
        yield from _texts(Path(file))


def _texts(file: Path) -> Iterator[str]:
    if ".jsonl" not in file.suffixes:
        yield from (line for _, line in _lines(file))
        return
    for number, row in enumerate(objects(file), 1):
        if not isinstance(row.get("text"), str):
            raise InputError(f'{file}, line {number}: expected a JSON object with "text"')
        yield row["text"]


def objects(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a JSON-lines file, gzipped or not."""
    for number, line in _lines(file):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise InputError(f"{file}, line {number}: not JSON ({error})") from None
        if not isinstance(row, dict):
            raise InputError(f"{file}, line {number}: expected a JSON object")
        yield row


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    opener = gzip.open if file.suffix == ".gz" else open
    number = 0
    try:
        with opener(file, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                yield number, line
    except (OSError, EOFError) as error:
        raise InputError(f"{file}, line {number + 1}: cannot be read ({error})") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{file}, line {number + 1}: not UTF-8 ({error.reason})") from None


def installed_python() -> Iterator[str]:
    """Yield the docstrings of this Python's standard library and installed packages."""
    for name in ("stdlib", "purelib"):
        yield from docstrings(Path(sysconfig.get_path(name)))


def docstrings(folder: Path) -> Iterator[str]:
    """Yield the first paragraph of every function's docstring in the Python files of a folder.

    Packages installed below the folder (`site-packages`) are not part of it.
    """
    for file in sorted(folder.rglob("*.py")):
        if "site-packages" in file.relative_to(folder).parts:
            continue
        try:
            tree = ast.parse(file.read_bytes())
        except (SyntaxError, ValueError, OSError, RecursionError, MemoryError):
            continue  # test data that is broken on purpose
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                docstring = ast.get_docstring(node)
                if docstring:
                    yield docstring.split("\n\n")[0]
