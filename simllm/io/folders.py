"""Safe writing into folders: simllm writes only into folders that are empty or that it wrote itself.

simllm puts a file `.simllm`, the marker, into each folder that it writes. The marker says what the folder
holds, and lists the files that simllm wrote. If the folder is replaced, only these files are replaced; all
others are kept. simllm refuses to write into a folder that has files but no marker, or whose marker names
another kind of content, such as score tables where a report is to be written.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from simllm.errors import InputError
from simllm.io import files
from simllm.io.folder_marker import (
    MARKER,
    Marker,
    changed_file,
    names_in,
    read_marker,
    write_marker,
    written_files,
)


def check_place(folder: Path) -> None:
    """Check that a folder can be created at a path, or that an existing folder there can be written.

    Nothing is created. Missing parent folders are allowed.

    Raises:
        InputError: The path leads through a file, a loop of links, or a folder without write permission.
    """
    folder = files.real(folder)
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
    folder = files.real(folder)
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
    real = files.real(folder)
    if real == files.real(Path()):
        raise InputError(f"{folder}: is the current folder, which cannot be replaced; name another")
    if os.path.ismount(real):
        raise InputError(f"{folder}: is a mount point, which cannot be replaced; name a folder in it")
    taken = set(names) & set(names_in(real)) - set(written_files(real))
    if taken:
        raise InputError(f"{folder / min(taken)}: was not written by simllm; move it away")
    if changed := changed_file(real):
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
        a, b = files.real(output), files.real(source)
        if a == b or a in b.parents or (b in a.parents and b.is_dir()):
            raise InputError(f"{output}: is the source {source}, inside it or above it; name another folder")


def own(folder: Path, content: str) -> None:
    """Create a folder if it is missing, and mark it as a folder of simllm.

    The mark is a file `.simllm`, called the marker. It says what the folder holds, and lists the files in the
    folder that simllm wrote. The function `add` writes files only into a folder that has a marker. An
    existing marker is kept.

    Args:
        folder: The folder.
        content: What the folder holds, such as "a training run".

    Raises:
        InputError: The folder has files but no marker, holds something else, or cannot be written.
    """
    check(folder, content)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if read_marker(folder) is None:
            write_marker(folder, Marker(content, []))
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror})") from None


def add(folder: Path, name: str, content: str | bytes) -> None:
    """Write a file into a folder, and list the file in the folder's marker.

    The marker is a file `.simllm`, which lists the files in the folder that simllm wrote. simllm does not
    overwrite files that are not in this list.

    Args:
        folder: The folder; it must have a marker.
        name: The path of the file, relative to the folder.
        content: The content of the file.

    Raises:
        InputError: The folder has no marker, or has a file of this name that simllm did not write; or the
            file cannot be written.
    """
    reserve(folder, [name])
    file = folder / name
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror})") from None
    files.write(file, content)


def reserve(folder: Path, names: Iterable[str]) -> None:
    """Add names of files to the marker of a folder, so that simllm may write these files later.

    The marker is the file `.simllm`. It lists the files in the folder that simllm may write and replace.

    Args:
        folder: The folder; it must have a marker.
        names: The paths of the files, relative to the folder.

    Raises:
        InputError: The folder has no marker. Or it already has a file with one of the `names`, and simllm did
            not write this file. Or the marker cannot be written.
    """
    names = list(names)
    marker = _check_additions(folder, names)
    if set(names) - set(marker.files) or set(names) & set(marker.sha256):
        sha256 = {name: digest for name, digest in marker.sha256.items() if name not in names}
        write_marker(folder, Marker(marker.content, list({*marker.files, *names}), sha256))


def check_addition(folder: Path, name: str) -> list[str]:
    """Check that simllm may write a file into a folder. The file is not written.

    simllm may write a new file, or replace a file that it wrote itself. The marker of the folder, a file
    `.simllm`, lists the files that simllm wrote.

    Args:
        folder: The folder; it must have a marker.
        name: The path of the file, relative to the folder.

    Returns:
        The relative paths of the files that simllm wrote into the folder so far.

    Raises:
        InputError: The folder has no marker, or has a file `name` that simllm did not write.
    """
    return list(_check_additions(folder, [name]).files)


def _check_additions(folder: Path, names: Iterable[str]) -> Marker:
    """Check that simllm may write files into a folder, and return the folder's marker."""
    marker = read_marker(folder)
    if marker is None:
        raise InputError(f"{folder}: was not written by simllm (no {MARKER} there)")
    for name in set(names).difference(marker.files):
        if (folder / name).exists():
            raise InputError(f"{folder / name}: was not written by simllm; move it away")
    return marker
