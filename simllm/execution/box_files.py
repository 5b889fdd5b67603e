"""Files of the working folder of a sandbox, written before a run and read after it.

The folder is reached through an open file descriptor, so the files may live in memory that only the sandbox
has mounted. No symbolic link is followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

_DEEPEST = 32  # levels of folders that are searched
_MOST_ENTRIES = 100_000  # entries of folders that are searched
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not block the reader
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_FOLDER = _READ | os.O_DIRECTORY


def write_files(box: int, files: Mapping[str, bytes]) -> None:
    """Write files into a folder; all become executable.

    Args:
        box: The file descriptor of the folder.
        files: The content of each file by relative path.

    Raises:
        OSError: A file cannot be written, for example because the folder is full.
    """
    for name, content in files.items():
        path = PurePosixPath(name)
        for parent in reversed(path.parents[:-1]):
            if not _exists(box, parent):
                os.mkdir(parent, dir_fd=box)
        with os.fdopen(os.open(path, _WRITE, 0o755, dir_fd=box), "wb") as file:
            file.write(content)


def _exists(box: int, path: PurePosixPath) -> bool:
    try:
        os.stat(path, dir_fd=box)
    except FileNotFoundError:
        return False
    return True


def read_files(box: int, patterns: Sequence[str], most: int) -> dict[str, bytes]:
    """Read the regular files of a folder that match a pattern, when no process can change them any more.

    Args:
        box: The file descriptor of the folder.
        patterns: Patterns as in `fnmatch` of relative paths; `*` matches `/`, too.
        most: Bytes of all files together; the rest is left out. (A full disk of files with holes can seem to
            be larger than the disk.)

    Returns:
        The content by relative path, in order of the paths.
    """
    found = {}
    for number, (name, folder, entry) in enumerate(_entries(box, "", _DEEPEST)):
        if number == _MOST_ENTRIES:
            break
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            with os.fdopen(os.open(entry, _READ, dir_fd=folder), "rb") as file:
                found[name] = file.read(most)
                most -= len(found[name])
    return dict(sorted(found.items()))


def _entries(folder: int, prefix: str, levels: int) -> Iterator[tuple[str, int, str]]:
    """Yield the relative path, the folder's file descriptor and the name of each readable regular file."""
    for name in sorted(os.listdir(folder)):
        try:
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISREG(mode) and mode & stat.S_IRUSR:
                yield prefix + name, folder, name
            elif stat.S_ISDIR(mode) and levels:
                inner = os.open(name, _FOLDER, dir_fd=folder)
                try:
                    yield from _entries(inner, f"{prefix}{name}/", levels - 1)
                finally:
                    os.close(inner)
        except PermissionError:  # a folder that the program closed to itself
            continue
