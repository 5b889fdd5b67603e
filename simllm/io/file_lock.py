"""Lock on a file or folder, so that only one process writes there."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from simllm.errors import InputError


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock on a file or folder during a `with` block, so that no other process writes there.

    The lock is a file `.NAME.lock` beside `path`. Only processes that call this function respect the lock.
    If this process is killed, the lock is released.

    Args:
        path: The file or folder; it need not exist.

    Raises:
        InputError: Another process has the lock, or the lock file cannot be written.
    """
    lock = path.with_name(f".{path.name}.lock")
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        while True:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_open(lock, descriptor):
                    break
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)  # the previous owner has just removed the lock file
    except BlockingIOError:
        raise InputError(f"{path}: another process is writing there") from None
    except OSError as error:
        raise InputError(f"{lock}: cannot be locked ({error.strerror})") from None
    try:
        yield
    finally:
        if os.fstat(descriptor).st_size == 0:  # our lock files are empty; another file is not ours
            lock.unlink(missing_ok=True)
        os.close(descriptor)


def _is_open(file: Path, descriptor: int) -> bool:
    """Return whether the file at a path is still the file that was opened from this path.

    The result is False if the file was removed, or replaced by another file, after it was opened.

    Args:
        file: The path that was opened.
        descriptor: The file descriptor of the opened file.
    """
    try:
        return os.path.samestat(file.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
