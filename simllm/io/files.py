"""Reading of text files line by line, and atomic writing of files."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import stat
import sys
import uuid
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.text_cleaning import encodable

_LONGEST_STEM = 200  # characters of a file name that its temporary name repeats


def lines(file: Path) -> Iterator[tuple[int, str]]:
    r"""Yield each line of a UTF-8 text file with its line number, which starts at 1.

    Lines end with `\n` or `\r\n`, which are removed. A byte-order mark is removed, too.

    Args:
        file: The file. It is decompressed if its name ends in `.gz`. The name `-` stands for standard
            input.

    Raises:
        InputError: The file cannot be read or decoded.
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
    """Return whether a file name is `-`, which stands for standard input."""
    return str(file) == "-"


def _opened(file: Path) -> contextlib.AbstractContextManager[Iterable[bytes]]:
    """Open a file to read bytes; `-` means standard input, and a file named `*.gz` is decompressed."""
    if is_stdin(file):
        return contextlib.nullcontext(sys.stdin.buffer)
    return gzip.open(file) if file.suffix == ".gz" else file.open("rb")


def objects(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read a JSON-lines file, which has one JSON object per line.

    Args:
        file: The file. It is decompressed if its name ends in `.gz`. The name `-` stands for standard
            input.

    Yields:
        The place of a line for error messages ("FILE, line 3"), and its JSON object.

    Raises:
        InputError: The file cannot be read, or a line is not a JSON object.
    """
    for number, line in lines(file):
        where = f"{file}, line {number}"
        yield where, parsed(line, where)


def parsed(line: str, where: str) -> dict[str, Any]:
    """Parse a line of a JSON-lines file into a JSON object.

    Args:
        line: The line.
        where: The place of the line for error messages, such as "FILE, line 3".

    Returns:
        The object. U+FFFD replaces characters that UTF-8 cannot encode (lone surrogates).

    Raises:
        InputError: The line is not a JSON object.
    """
    try:
        row = json.loads(line)
        if "\\u" in line:
            row = _encodable(row)
    except ValueError as error:
        if not line.strip():
            raise InputError(f"{where}: empty; expected a JSON object") from None
        raise InputError(f"{where}: not JSON ({error})") from None
    except RecursionError:
        raise InputError(f"{where}: JSON that is nested too deeply") from None
    if not isinstance(row, dict):
        raise InputError(f"{where}: expected a JSON object")
    return row


def _encodable(value: Any) -> Any:
    """Replace characters that UTF-8 cannot encode (lone surrogates) by U+FFFD in all texts of JSON data."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, list):
        return [_encodable(part) for part in value]
    if isinstance(value, dict):
        return {encodable(key): _encodable(part) for key, part in value.items()}
    return value


def value_under(row: dict[str, Any], field: str, where: str, kind: str = "a value") -> Any:
    """Return the value of a key in a JSON object.

    Args:
        row: The JSON object.
        field: The key.
        where: The place of the object for error messages, such as "FILE, line 3".
        kind: The expected kind of value, such as "a text". It is only used in the error message; the value
            is not checked.

    Raises:
        InputError: The object lacks the key.
    """
    if field not in row:
        names = ", ".join(islice(row, 20)) or "nothing"
        raise InputError(f'{where}: expected {kind} under "{field}"; it has {names}')
    return row[field]


def text_under(row: dict[str, Any], field: str, where: str) -> str:
    """Return the text under a key in a JSON object.

    Args:
        row: The JSON object.
        field: The key.
        where: The place of the object for error messages, such as "FILE, line 3".

    Raises:
        InputError: The object lacks the key, or its value is not a text.
    """
    value = value_under(row, field, where, "a text")
    if not isinstance(value, str):
        actual = type(value).__name__ if isinstance(value, list | dict) else json.dumps(value)[:40]
        raise InputError(f'{where}: expected a text under "{field}", not {actual}')
    return value


def real(path: Path) -> Path:
    """Return the absolute path of a file, after following all symbolic links.

    Links that form a loop cannot be followed. They stay in the path, and no error is raised.
    """
    return Path(os.path.realpath(path))


def printable(name: str | os.PathLike[str]) -> str:
    """Return a file name as text that can be printed: U+FFFD replaces bytes that are not UTF-8."""
    return os.fsencode(name).decode("utf-8", "replace")


def check_different(inputs: Iterable[Path]) -> None:
    """Check that no input file or folder of a command is named twice, even by two different paths.

    Args:
        inputs: The paths of the inputs.

    Raises:
        InputError: Two paths lead to the same file or folder, after following all symbolic links.
    """
    known = set[Path]()
    for path in inputs:
        if real(path) in known:
            raise InputError(f"{path}: is named twice")
        known.add(real(path))


def check_output(file: Path | None, inputs: Iterable[Path], overwrite: bool) -> None:
    """Check that a command may write its output file, before the command does long work.

    Args:
        file: The output file; None means standard output, which is always allowed.
        inputs: The input files of the command.
        overwrite: Whether the output may replace an existing file that has content. An empty file, a pipe or
            a device is always allowed.

    Raises:
        InputError: The output file is also an input file, it is a folder, it exists and may not be replaced,
            or its folder does not exist.
    """
    if file is None:
        return
    for read in inputs:
        if not is_stdin(read) and real(read) == real(file):
            raise InputError(f"{file}: would overwrite what is read")
    try:
        status = file.stat()
    except FileNotFoundError:
        if not real(file).parent.is_dir():
            raise InputError(f"{file}: cannot be written (no such folder)") from None
        return
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror})") from None
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{file}: cannot be written (it is a folder)")
    if stat.S_ISREG(status.st_mode) and status.st_size and not overwrite:
        raise InputError(f"{file}: exists already; --overwrite replaces it")


def write(file: Path, content: str | bytes | Iterable[str]) -> None:
    """Write a file atomically: after a crash, the file has either its old or its new content.

    A pipe or a device, such as `/dev/stdout`, is written directly.

    Args:
        file: The file. If it is a symbolic link, the file to which it points is replaced.
        content: The content, or an iterable of its parts. Characters that UTF-8 cannot encode (lone
            surrogates) are escaped.

    Raises:
        InputError: The file cannot be written.
    """
    pieces = [content] if isinstance(content, str | bytes) else content
    encoded = (p if isinstance(p, bytes) else p.encode("utf-8", "backslashreplace") for p in pieces)
    try:
        if file.exists() and not file.is_file():
            with file.open("wb") as target:
                target.writelines(encoded)
            return
        file = real(file)
        with temporary(file) as partial:
            with partial.open("wb") as target:
                target.writelines(encoded)
            sync(partial)
            partial.replace(file)
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror})") from None


@contextlib.contextmanager
def temporary(file: Path) -> Iterator[Path]:
    """Make an empty temporary file beside `file` for a `with` block, and remove it after the block.

    If `file` exists, the temporary file gets the permissions of `file`. The block may rename the temporary
    file; then the file is not removed.

    Yields:
        The path of the temporary file.
    """
    partial = file.with_name(f".{file.name[:_LONGEST_STEM]}.{uuid.uuid4().hex[:8]}.partial")
    partial.touch(exist_ok=False)
    try:
        if file.exists():
            partial.chmod(file.stat().st_mode & 0o777)
        yield partial
    finally:
        partial.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Wait until the content of a file or folder is on the disk (fsync)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
