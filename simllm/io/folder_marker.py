"""The marker of a folder: a file `.simllm` that says what simllm wrote into the folder."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from simllm.errors import InputError
from simllm.io import atomic_write

MARKER = ".simllm"


@dataclass(frozen=True)
class Marker:
    """The content of a marker, the file `.simllm` that says what simllm wrote into a folder.

    Attributes:
        content: What the folder holds, such as "a model"; empty if the marker does not say it.
        files: The relative paths of the files that simllm wrote.
        sha256: A dict from the path of a file to the SHA-256, in hex digits, of the content that simllm
            wrote. If the file later has another SHA-256, the user has changed the file. Files that may change
            are left out.
    """

    content: str
    files: Sequence[str]
    sha256: Mapping[str, str] = field(default_factory=dict)


def write_marker(folder: Path, marker: Marker) -> None:
    """Write a folder's marker: the file `.simllm`, which lists the files that simllm wrote into it."""
    row = {"written_by": "simllm", **asdict(marker), "files": sorted(marker.files)}
    atomic_write.write(folder / MARKER, json.dumps(row, indent=1) + "\n")


def read_marker(folder: Path) -> Marker | None:
    """Read a folder's marker: the file `.simllm`, which lists the files that simllm wrote into the folder.

    Returns:
        The content of the marker; None if the folder has no valid marker.

    Raises:
        InputError: The file cannot be read.
    """
    try:
        marker = json.loads((folder / MARKER).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError as error:
        raise InputError(f"{folder / MARKER}: cannot be read ({error.strerror})") from None
    names = marker.get("files") if isinstance(marker, dict) else None
    if not isinstance(names, list) or not all(_is_inside(name) for name in names):
        return None
    sha256 = marker.get("sha256")
    return Marker(str(marker.get("content", "")), names, sha256 if isinstance(sha256, dict) else {})


def written_files(folder: Path) -> Sequence[str]:
    """Return the relative paths of the files that simllm wrote into a folder.

    The paths are listed in the folder's marker, a file `.simllm`. Without a valid marker, the list is empty.
    """
    marker = read_marker(folder)
    return marker.files if marker else ()


def changed_file(folder: Path) -> str | None:
    """Find a file in a folder that was changed after simllm wrote it.

    The SHA-256 of a file is compared with that in the folder's marker, the file `.simllm`.

    Returns:
        The relative path of one such file; None if there is none.
    """
    marker = read_marker(folder)
    for name, digest in marker.sha256.items() if marker else ():
        if (folder / name).is_file() and sha256_of(folder / name) != digest:
            return name
    return None


def sha256_of(file: Path) -> str:
    """Compute the SHA-256 of a file, in hex digits."""
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def _is_inside(name: object) -> bool:
    """Return whether `name` is a path that stays inside a folder: a relative path without ".."."""
    return isinstance(name, str) and not Path(name).is_absolute() and ".." not in Path(name).parts


def names_in(folder: Path) -> list[str]:
    """Return the names of all files and folders in a folder; no names if the folder is missing.

    Raises:
        InputError: The folder cannot be read.
    """
    try:
        return os.listdir(folder) if folder.is_dir() else []  # noqa: PTH208
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror})") from None


def files_in(folder: Path) -> list[str]:
    """Return the relative paths of all files in a folder and its subfolders; links count as files."""
    return [
        os.path.relpath(os.path.join(here, name), folder)  # noqa: PTH118
        for here, inner, names in os.walk(folder)
        for name in (*names, *(d for d in inner if os.path.islink(os.path.join(here, d))))  # noqa: PTH114, PTH118
    ]


def remove_empty(folder: Path) -> None:
    """Remove a folder if it is empty; otherwise, or if it cannot be removed, do nothing."""
    with contextlib.suppress(OSError):
        folder.rmdir()
