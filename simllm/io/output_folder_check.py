"""Checks of an output folder: may simllm write into the folder, or replace the folder?

simllm writes only into folders that are empty or that it wrote itself. simllm puts a file `.simllm`, the
marker, into each folder that it writes. The marker says what the folder holds, and lists the files that
simllm wrote. If the folder is replaced, only these files are replaced; all others are kept. simllm refuses to
write into a folder that has files but no marker. It also refuses if the marker names another kind of content:
for example, a report cannot replace a model.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from simllm.errors import InputError
from simllm.io.folder_marker import MARKER, changed_file, names_in, read_marker, written_files
from simllm.io.real_path import real


def check_place(folder: Path) -> None:
    """Check that a folder can be created at a path, or that an existing folder there can be written.

    Nothing is created. Missing parent folders are allowed.

    Raises:
        InputError: The path leads through a file, a loop of links, or a folder without write permission.
    """
    folder = real(folder)
    try:
        loops = [path for path in (folder, *folder.parents) if path.is_symlink()]  # other links are resolved
        existing = next(path for path in (folder, *folder.parents) if path.exists())
    except OSError as error:
        raise InputError(f"{folder}: cannot be used ({error.strerror})") from None
    if loops:
        raise InputError(f"{loops[0]}: is a loop of links")
    if not existing.is_dir():
        raise InputError(f"{existing}: is not a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise InputError(f"{existing}: cannot be written to")


def check(folder: Path, content: str | None = None) -> None:
    """Check that simllm may write into a folder.

    The folder must be missing, empty, or written by simllm with the same kind of content. simllm puts a file
    `.simllm` into each folder that it writes.

    Args:
        folder: The folder.
        content: What will be written, such as "a model"; None if the folder may hold anything from simllm.

    Raises:
        InputError: The folder has files but no file `.simllm`, it holds something else than `content`, or it
            cannot be written.
    """
    check_place(folder)
    folder = real(folder)
    marker = read_marker(folder)
    if names_in(folder) and not marker:
        raise InputError(
            f"{folder}: holds files that simllm did not write (no {MARKER} there); name a new or empty folder"
        )
    if marker and content and marker.content not in ("", content):
        raise InputError(f"{folder}: holds {marker.content}; name another folder for {content}")


def check_replaceable(folder: Path, content: str, names: Iterable[str] = ()) -> None:
    """Check that simllm may replace a folder by a new one.

    The folder must be missing, empty, or written by simllm with the same kind of content.

    Args:
        folder: The folder to replace.
        content: What the new folder will hold, such as "a model".
        names: Names of files that the new folder will have, as far as they are known.

    Raises:
        InputError: The folder has files but was not written by simllm, holds something else, cannot be
            written, is the current folder, or is a mount point. Or a file in it has one of the `names`, but
            was not written by simllm. Or a file was changed after simllm wrote it.
    """
    check(folder, content)
    path = real(folder)
    if path == real(Path()):
        raise InputError(f"{folder}: is the current folder, which cannot be replaced; name another")
    if os.path.ismount(path):
        raise InputError(f"{folder}: is a mount point, which cannot be replaced; name a folder in it")
    taken = set(names) & set(names_in(path)) - set(written_files(path))
    if taken:
        raise InputError(f"{folder / min(taken)}: was not written by simllm; move it away")
    if changed := changed_file(path):
        raise InputError(f"{folder / changed}: was changed after simllm wrote it; move it away")


def check_apart(output: Path, sources: Iterable[Path]) -> None:
    """Check that the output folder of a command overlaps with nothing that the command reads.

    Args:
        output: The output folder.
        sources: The files and folders that the command reads.

    Raises:
        InputError: The output folder is one of the sources, is inside a source, or contains a source.
    """
    for source in sources:
        a, b = real(output), real(source)
        if a == b or a in b.parents or (b in a.parents and b.is_dir()):
            raise InputError(f"{output}: is the source {source}, inside it or above it; name another folder")
