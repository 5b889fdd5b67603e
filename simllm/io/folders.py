"""Safe writing of folders: only folders with our marker are replaced.

The marker, `.simllm`, lists the files that simllm wrote into the folder. Replacing the folder
replaces these files and keeps all others. A folder that holds files but no marker is refused.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from safetensors import SafetensorError

from simllm.errors import InputError
from simllm.io import files

MARKER = ".simllm"

# Names of the temporary folders and the lock that a killed replacement of the folder NAME leaves.
_LEFTOVER = re.compile(r"\.(.+?)(?:\.[a-z0-9_]{8}\.(old|partial)|\.lock)")


def check_place(folder: Path) -> None:
    """Raise InputError if a folder, or a file in it, cannot be made here; nothing is made yet."""
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


def check(folder: Path) -> None:
    """Raise InputError unless simllm may write `folder`: it is missing, empty or carries the marker."""
    check_place(folder)
    folder = files.real(folder)
    if _names(folder) and _written(folder) is None:
        raise InputError(
            f"{folder}: holds files that simllm did not write (no {MARKER} there); name a new or empty folder"
        )


def check_replaceable(folder: Path, names: Iterable[str] = ()) -> None:
    """Check that simllm may replace a folder.

    Args:
        folder: The folder, which must pass `check`.
        names: Names of files in the new folder.

    Raises:
        InputError: `check` fails, the folder is the current folder or a mount point, or it holds a
            file of these names that simllm did not write.
    """
    check(folder)
    real = files.real(folder)
    if real == files.real(Path()):
        raise InputError(f"{folder}: is the current folder, which cannot be replaced; name another")
    if os.path.ismount(real):
        raise InputError(f"{folder}: is a mount point, which cannot be replaced; name a folder in it")
    taken = set(names) & set(_names(real)) - set(_written(real) or ())
    if taken:
        raise InputError(f"{folder / min(taken)}: was not written by simllm; move it away")


def check_apart(output: Path, sources: Iterable[Path]) -> None:
    """Raise InputError if the folder `output` is one of the sources, inside one or above one."""
    for source in sources:
        a, b = files.real(output), files.real(source)
        if a == b or a in b.parents or (b in a.parents and b.is_dir()):
            raise InputError(f"{output}: is the source {source}, inside it or above it; name another folder")


def own(folder: Path) -> None:
    """Make a folder with our marker, or mark an empty one, so that `add` may write files into it.

    Raises:
        InputError: `check` fails, or the folder cannot be written.
    """
    check(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if _written(folder) is None:
            _mark(folder, [])
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror})") from None


def add(folder: Path, name: str, content: str | bytes) -> None:
    """Write a file into a folder that carries our marker.

    Args:
        folder: The folder.
        name: The path of the file in the folder.
        content: The content of the file.

    Raises:
        InputError: `check_addition` fails, or the file cannot be written.
    """
    written = check_addition(folder, name)
    file = folder / name
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror})") from None
    if name not in written:
        _mark(folder, [*written, name])
    files.write(file, content)


def check_addition(folder: Path, name: str) -> list[str]:
    """Check that `add` may write the file `name` into a folder.

    Returns:
        The files that simllm wrote into the folder.

    Raises:
        InputError: The folder carries no marker, or has a file `name` that simllm did not write.
    """
    written = _written(folder)
    if written is None:
        raise InputError(f"{folder}: was not written by simllm (no {MARKER} there)")
    if name not in written and (folder / name).exists():
        raise InputError(f"{folder / name}: was not written by simllm; move it away")
    return written


@contextlib.contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Replace a folder atomically: yield an empty folder to fill, which then becomes `folder`.

    Files in `folder` that simllm did not write are kept. After an exception, `folder` is unchanged.

    Raises:
        InputError: `check_replaceable` fails, another process is replacing the folder, or it cannot
            be written.
    """
    check_replaceable(folder)
    folder = files.real(folder)
    with files.locked(folder):
        try:
            recover(folder)
            partial = _temporary_name(folder, "partial")
            partial.mkdir()
        except OSError as error:
            raise InputError(f"{folder}: cannot be written ({error.strerror})") from None
        try:
            _mark(partial, [])
            yield partial
            _mark(partial, [name for name in _files(partial) if name != MARKER])
            _replace(partial, folder)
        except (OSError, SafetensorError) as error:
            raise InputError(f"{folder}: cannot be written ({error})") from None
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def remove(folder: Path) -> None:
    """Remove the files that simllm wrote into `folder`, and the folder if nothing else is left."""
    for name in _written(folder) or ():
        above = list(Path(name).parents)[:-1]
        if not any((folder / path).is_symlink() for path in above):  # a link may lead out of the folder
            (folder / name).unlink(missing_ok=True)
    if _files(folder) == [MARKER]:
        (folder / MARKER).unlink()
    for inner in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
        _remove_empty(inner)
    _remove_empty(folder)


def recover(folder: Path) -> None:
    """Finish or undo a replacement of `folder` that was killed; remove its temporary folders."""
    for left in _leftovers(folder, "old"):
        if _written(left) is None:
            _remove_empty(left)  # killed while it was empty
        elif folder.exists():
            _keep_others(left, folder)
        else:
            left.rename(folder)
    for left in _leftovers(folder, "partial"):
        if _written(left) is None:  # killed before it had its marker
            for path in left.glob(f".{MARKER}.*.partial"):
                path.unlink()
            _remove_empty(left)
        else:
            _discard(left)


def recover_all(parent: Path) -> None:
    """Recover every folder in `parent` whose replacement was killed (see `recover`)."""
    matches = (_LEFTOVER.fullmatch(name) for name in _names(parent))
    for name in sorted({match[1] for match in matches if match}):
        with files.locked(parent / name):
            recover(parent / name)


def _temporary_name(folder: Path, suffix: str) -> Path:
    """Return an unused name beside `folder` that `_LEFTOVER` matches."""
    return folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}.{suffix}")


def _leftovers(folder: Path, suffix: str) -> list[Path]:
    """Return the temporary folders that killed replacements of `folder` left, with this suffix."""
    matches = (_LEFTOVER.fullmatch(name) for name in _names(folder.parent))
    return [folder.parent / m[0] for m in matches if m and (m[1], m[2]) == (folder.name, suffix)]


def _discard(partial: Path) -> None:
    """Remove a temporary folder; the marker is removed last, so that a later call can finish."""
    for path in partial.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != MARKER:
            path.unlink()
    shutil.rmtree(partial)


def _replace(new: Path, folder: Path) -> None:
    """Rename the folder `new` to `folder`, with the files of the old folder that are not ours."""
    for path in (*new.rglob("*"), new):
        files.sync(path)
    check(folder)
    others = set(_files(folder)) - {MARKER, *(_written(folder) or ())}
    if taken := sorted(others & set(_files(new))):
        raise InputError(f"{folder / taken[0]}: was not written by simllm; move it away")
    old = None
    if _names(folder):
        old = _temporary_name(folder, "old")
        folder.rename(old)
    new.rename(folder)
    files.sync(folder.parent)
    if old:
        _keep_others(old, folder)


def _keep_others(old: Path, folder: Path) -> None:
    """Move the files that simllm did not write from `old` to `folder`; then remove `old`."""
    for name in set(_files(old)) - {MARKER, *(_written(old) or ())}:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if not (folder / name).exists():
            (old / name).rename(folder / name)
    remove(old)


def _mark(folder: Path, names: list[str]) -> None:
    """Write the marker, with the names of the files that simllm wrote."""
    files.write(
        folder / MARKER, json.dumps({"written_by": "simllm", "files": sorted(names)}, indent=1) + "\n"
    )


def _written(folder: Path) -> list[str] | None:
    """Return the files that simllm wrote into `folder`; None if it carries no marker."""
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
    """Return whether an entry of a marker is a relative path that does not leave the folder."""
    return isinstance(name, str) and not Path(name).is_absolute() and ".." not in Path(name).parts


def _names(folder: Path) -> list[str]:
    """Return the names in a folder, none if it is missing; raise InputError if it cannot be read."""
    try:
        return os.listdir(folder) if folder.is_dir() else []  # noqa: PTH208
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror})") from None


def _files(folder: Path) -> list[str]:
    """Return the relative paths of all files in a folder; links are not followed, but listed."""
    return [
        os.path.relpath(os.path.join(here, name), folder)  # noqa: PTH118
        for here, inner, names in os.walk(folder)
        for name in (*names, *(d for d in inner if os.path.islink(os.path.join(here, d))))  # noqa: PTH114, PTH118
    ]


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()
