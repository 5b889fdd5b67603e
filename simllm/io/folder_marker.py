"""The marker of a folder: a file `.simllm` that lists the files that simllm wrote into the folder."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from simllm.errors import InputError
from simllm.io import files

MARKER = ".simllm"


def write_marker(folder: Path, names: list[str]) -> None:
    """Write the marker `.simllm` of a folder, which lists the `names` of the files that simllm wrote."""
    files.write(
        folder / MARKER, json.dumps({"written_by": "simllm", "files": sorted(names)}, indent=1) + "\n"
    )


def written_files(folder: Path) -> list[str] | None:
    """Return the relative paths of the files that simllm wrote into a folder.

    The paths are read from the marker, the file `.simllm`. Without a valid marker, None is returned.
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
    return names


def _is_inside(name: object) -> bool:
    """Return whether `name`, an entry of a marker file, is a relative path that stays inside its folder."""
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
