"""Reading and writing files in the working folder of a sandbox.

The files are written before a run and read after it. The folder may be mounted only inside the sandbox. In
this case, it has no path outside the sandbox. Therefore the functions take an open file descriptor of the
folder, not its path. Symbolic links are not followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

_DEEPEST = 32  # levels of folders that are searched
_MOST_ENTRIES = 100_000  # files that are compared with the patterns
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not block the reader
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_FOLDER = _READ | os.O_DIRECTORY


def write_files(box: int, files: Mapping[str, bytes]) -> None:
    """Write executable files into the working folder of a sandbox.

    Args:
        box: The file descriptor of the folder.
        files: The content of each file, by its relative path. Missing subfolders are made.

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
    """Read the files of a sandbox's working folder whose paths match a pattern.

    All processes of the sandbox must have ended, so that no process changes the files during the reading.

    Args:
        box: The file descriptor of the folder.
        patterns: Patterns for relative paths, as in `fnmatch`. `*` also matches `/`.
        most: The largest number of bytes to read from all files together. Further content is cut off. This
            limit is needed although the folder has a limited size: a sparse file can be larger than the
            space that it uses.

    Returns:
        The content of each file by its relative path, sorted by path.
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
    """Find the readable regular files in a folder and its subfolders.

    Args:
        folder: The file descriptor of the folder.
        prefix: The relative path of the folder, with a slash at its end; "" for the top folder.
        levels: The number of levels of subfolders to search.

    Yields:
        The file's relative path, the file descriptor of the folder that directly contains the file, and the
        file's name.
    """
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
        except PermissionError:  # a folder that the program made unreadable
            continue
