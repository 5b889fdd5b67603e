"""Atomic writing of files: after a crash, a file has either its old or its new content."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from simllm.errors import InputError
from simllm.io.real_path import real

_LONGEST_STEM = 200  # characters of a file name that its temporary name repeats


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
