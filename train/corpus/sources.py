"""Readers: every source gives raw comment texts, one by one."""

from __future__ import annotations

import ast
import glob
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from simllm.errors import InputError
from simllm.files import lines, objects, text_under

INSTALLED_PYTHON = "installed-python"


def read(source: str) -> Iterator[str]:
    """Yield the texts of a source.

    A source is a file or glob pattern of JSON lines (`*.jsonl`, field `text`) or plain lines
    (anything else), gzipped where the name ends in `.gz`; or `installed-python`, the
    documentation of the Python modules installed on this machine.
    """
    if source == INSTALLED_PYTHON:
        yield from installed_python()
    else:
        for file in matching(source):
            yield from _texts(file)


def matching(pattern: str) -> list[Path]:
    """The files that a pattern names, sorted; raise InputError where there is none."""
    files = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 (Path.glob takes no absolute pattern)
    if not files:
        raise InputError(f"source {pattern!r}: no such file")
    return [Path(file) for file in files]


def _texts(file: Path) -> Iterator[str]:
    if ".jsonl" in file.suffixes:
        for where, row in objects(file):
            yield text_under(row, "text", where)
    else:
        for _, line in lines(file):
            yield line


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
