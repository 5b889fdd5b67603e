"""Creation of folders for simllm's output, and writing of single files into them.

Such a folder has a file `.simllm`, the marker. The marker says what the folder holds, and lists the files
that simllm wrote. simllm adds files only to folders with a marker, and overwrites only listed files.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from simllm.errors import InputError
from simllm.io import atomic_write
from simllm.io.folder_marker import MARKER, Marker, read_marker, write_marker
from simllm.io.output_folder_check import check


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
    atomic_write.write(file, content)


def reserve(folder: Path, names: Iterable[str]) -> None:
    """Record that simllm may later write files with the given names into a folder.

    The names are added to the marker of the folder. The marker is the file `.simllm`, which lists the files
    in the folder that simllm may write and replace.

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
    """Check that simllm may write files into a folder, and return the folder's marker.

    The marker is a file `.simllm`, which lists the files that simllm wrote. Other files are not overwritten.

    Args:
        folder: The folder; it must have a marker.
        names: The paths of the files, relative to the folder.

    Raises:
        InputError: The folder has no marker. Or it already has a file with one of the `names`, and simllm did
            not write this file.
    """
    marker = read_marker(folder)
    if marker is None:
        raise InputError(f"{folder}: was not written by simllm (no {MARKER} there)")
    for name in set(names).difference(marker.files):
        if (folder / name).exists():
            raise InputError(f"{folder / name}: was not written by simllm; move it away")
    return marker
