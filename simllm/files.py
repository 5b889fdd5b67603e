"""Reading lines that name their place in every error; writing that is whole or not at all."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import shutil
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from simllm.errors import InputError


def lines(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a UTF-8 file, gzipped where its name ends in `.gz`, with their numbers.

    `-` is standard input. Only line feeds, alone or after a carriage return, end a line; a byte-order mark is
    dropped. Raises InputError that names file and line for what cannot be read or decoded.
    """
    number = 0
    try:
        with _opened(file) as data:
            for number, line in enumerate(data, 1):
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                yield number, text.removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise InputError(f"{file}, line {number}: not UTF-8 ({error.reason})") from None
    except EOFError:
        raise InputError(f"{file}: ends in the middle, after line {number}") from None
    except zlib.error as error:
        raise InputError(f"{file}: is damaged after line {number} ({error})") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror or error})") from None


def is_stdin(file: Path) -> bool:
    """Whether `file` stands for standard input."""
    return str(file) == "-"


def _opened(file: Path) -> contextlib.AbstractContextManager[Iterable[bytes]]:
    if is_stdin(file):
        return contextlib.nullcontext(sys.stdin.buffer)
    return gzip.open(file) if file.suffix == ".gz" else file.open("rb")


def objects(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the JSON objects of a JSON-lines file, each with its place ("file, line 3")."""
    for number, line in lines(file):
        where = f"{file}, line {number}"
        yield where, parsed(line, where)


def parsed(line: str, where: str) -> dict[str, Any]:
    """Return the JSON object in a line; raise InputError that names its place."""
    try:
        row = json.loads(line)
    except ValueError as error:
        if not line.strip():
            raise InputError(f"{where}: empty; expected a JSON object") from None
        raise InputError(f"{where}: not JSON ({error})") from None
    except RecursionError:
        raise InputError(f"{where}: JSON that is nested too deeply") from None
    if not isinstance(row, dict):
        raise InputError(f"{where}: expected a JSON object")
    return row


def text_under(row: dict[str, Any], field: str, where: str) -> str:
    """Return the text that `row` holds under `field`; raise InputError where it is none."""
    if field not in row:
        raise InputError(f'{where}: expected a text under "{field}"; it has {", ".join(row) or "nothing"}')
    if not isinstance(row[field], str):
        raise InputError(f'{where}: expected a text under "{field}", not {json.dumps(row[field])[:40]}')
    return str(row[field])


def not_over(output: Path | None, inputs: Iterable[Path]) -> None:
    """Raise InputError where `output` is one of the files that are read."""
    for file in inputs:
        if output and not is_stdin(file) and file.resolve() == output.resolve():
            raise InputError(f"-o {output}: would overwrite what is read")


def check_place(folder: Path) -> None:
    """Raise InputError where a folder cannot be made, or files in it; nothing is made yet."""
    folder = folder.resolve()
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not existing.is_dir():
        raise InputError(f"{existing}: is not a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise InputError(f"{existing}: cannot be written to")


def write(file: Path, text: str) -> None:
    """Write a text file, whole or not at all; a pipe or a device is simply written to."""
    file = file.resolve()  # a link's target is replaced, not the link
    try:
        if file.exists() and not file.is_file():
            with file.open("w", encoding="utf-8") as target:
                target.write(text)
            return
        partial = file.parent / f".{file.name}.{os.getpid()}.partial"
        try:
            partial.write_text(text, encoding="utf-8")
            sync(partial)
            partial.replace(file)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror})") from None


@contextlib.contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Yield an empty folder to be filled; then it takes the place of `folder`, whole or not at all.

    Raises InputError where it cannot be written.
    """
    partial = folder.with_name(folder.name + ".partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        yield partial
        replace_folder(partial, folder)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{folder}: cannot be written ({error})") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def replace_folder(new: Path, folder: Path) -> None:
    """Put the finished folder `new`, safe on the disk, in the place of `folder`."""
    for path in (*new.rglob("*"), new):
        sync(path)
    old = folder.with_name(folder.name + ".old")
    recover(folder)
    if folder.exists():
        folder.rename(old)
    new.rename(folder)
    sync(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def recover(folder: Path) -> None:
    """Undo a replacement that was killed half-way; does nothing to a folder that is there."""
    old = folder.with_name(folder.name + ".old")
    if folder.exists():
        shutil.rmtree(old, ignore_errors=True)
    elif old.exists():
        old.rename(folder)


def sync(path: Path) -> None:
    """Wait until a file or folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
