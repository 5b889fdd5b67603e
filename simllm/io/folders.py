"""Safe writing of folders: simllm replaces only folders that it wrote itself.

simllm puts a file `.simllm`, the marker, into each folder that it writes. The marker lists the files that
simllm wrote. If the folder is replaced, only these files are replaced; all others are kept. simllm refuses
to write into a folder that has files but no marker.
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


def check(folder: Path) -> None:
    """Check that simllm may write into a folder.

    The folder must be missing, empty, or written by simllm. simllm puts a file `.simllm` into each folder
    that it writes.

    Raises:
        InputError: The folder has files but no file `.simllm`, or it cannot be written.
    """
    check_place(folder)
    folder = files.real(folder)
    if _names(folder) and _written(folder) is None:
        raise InputError(
            f"{folder}: holds files that simllm did not write (no {MARKER} there); name a new or empty folder"
        )


def check_replaceable(folder: Path, names: Iterable[str] = ()) -> None:
    """Check that simllm may replace a folder by a new one.

    The folder must be missing, empty, or written by simllm (it then has the file `.simllm`).

    Args:
        folder: The folder to replace.
        names: Names of files that the new folder will have. Names that are not yet known may be left out.

    Raises:
        InputError: The folder has files but was not written by simllm, cannot be written, is the current
            folder, or is a mount point. Or it has a file with one of the `names` that simllm did not write.
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


def own(folder: Path) -> None:
    """Create a folder if it is missing, and mark it as a folder of simllm.

    The mark is a file `.simllm`, called the marker. It lists the files in the folder that simllm wrote. The
    function `add` writes files only into a folder that has a marker. An existing marker is kept.

    Raises:
        InputError: The folder has files but no marker, or cannot be written.
    """
    check(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if _written(folder) is None:
            _mark(folder, [])
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror})") from None


def add(folder: Path, name: str, content: str | bytes) -> None:
    """Write a file into a folder, and list the file in the folder's marker, the file `.simllm`.

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
    written = _check_additions(folder, names)
    if new := [name for name in names if name not in written]:
        _mark(folder, [*written, *new])


def check_addition(folder: Path, name: str) -> list[str]:
    """Check that the function `add` may write a file into a folder.

    Args:
        folder: The folder; it must have a marker (the file `.simllm`).
        name: The path of the file, relative to the folder.

    Returns:
        The relative paths of the files that simllm wrote into the folder so far.

    Raises:
        InputError: The folder has no marker, or has a file `name` that simllm did not write.
    """
    return _check_additions(folder, [name])


def _check_additions(folder: Path, names: Iterable[str]) -> list[str]:
    written = _written(folder)
    if written is None:
        raise InputError(f"{folder}: was not written by simllm (no {MARKER} there)")
    for name in set(names).difference(written):
        if (folder / name).exists():
            raise InputError(f"{folder / name}: was not written by simllm; move it away")
    return written


@contextlib.contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Replace a folder atomically by the files that a `with` block writes.

    The block writes into a new temporary folder. After the block, the temporary folder replaces `folder`.
    Files in the old folder that simllm did not write are kept. If the block raises an exception, the old
    folder stays unchanged.

    Args:
        folder: The folder to replace; it may be missing.

    Yields:
        The path of the temporary folder.

    Raises:
        InputError: `check_replaceable` rejects the folder, another process is replacing it, or a file cannot
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
    """Remove the files that simllm wrote into a folder; then remove the folder if it is empty."""
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
    """Repair a folder after a process was killed while it replaced the folder with `replacing`.

    If the new folder was already in place, the replacement is finished. Otherwise it is undone, so that the
    old folder is back in its place. Temporary folders beside `folder` are removed.
    """
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
    """Clean up a folder in which processes were killed while they wrote.

    Interrupted replacements of subfolders are finished or undone, and temporary files are removed. No other
    process may write into `parent` meanwhile.

    Args:
        parent: A folder that simllm wrote, such as the folder of a training run.
    """
    matches = [match for match in map(_LEFTOVER.fullmatch, _names(parent)) if match]
    for name in sorted({match[1] for match in matches}):
        with files.locked(parent / name):
            recover(parent / name)
    for match in matches:
        path = parent / match[0]
        if match[2] == "partial" and path.is_file() and not path.is_symlink():
            path.unlink()  # from a killed call of `files.write`


def _temporary_name(folder: Path, suffix: str) -> Path:
    """Return an unused path for a temporary folder beside `folder`: `.NAME.RANDOM.suffix`.

    Args:
        folder: The folder, which is called NAME.
        suffix: "partial" for a new folder that is being written, "old" for the folder that it replaces.
    """
    return folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}.{suffix}")


def _leftovers(folder: Path, suffix: str) -> list[Path]:
    """Return the temporary folders that killed calls of `replacing` left beside `folder`.

    Args:
        folder: The folder that was to be replaced.
        suffix: "partial" for new folders that were being written, "old" for the folders that they replace.
    """
    matches = (_LEFTOVER.fullmatch(name) for name in _names(folder.parent))
    return [folder.parent / m[0] for m in matches if m and (m[1], m[2]) == (folder.name, suffix)]


def _discard(partial: Path) -> None:
    """Remove a temporary folder with all its files; the marker, the file `.simllm`, is removed last.

    If the removal is interrupted, the marker shows a later call that simllm may remove the rest.
    """
    for path in partial.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != MARKER:
            path.unlink()
    shutil.rmtree(partial)


def _replace(new: Path, folder: Path) -> None:
    """Replace `folder` by the folder `new`, but keep those files of `folder` that simllm did not write."""
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
    """Move the user's files from an old folder into the new folder, and remove the old folder.

    The user's files are those that simllm did not write. If the new folder already has a file of the same
    name, the user's file stays in the old folder, which is then not removed.

    Args:
        old: The old folder, which was replaced.
        folder: The new folder.
    """
    for name in set(_files(old)) - {MARKER, *(_written(old) or ())}:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if not (folder / name).exists():
            (old / name).rename(folder / name)
    remove(old)


def _mark(folder: Path, names: list[str]) -> None:
    """Write the marker `.simllm` of a folder, which lists the `names` of the files that simllm wrote."""
    files.write(
        folder / MARKER, json.dumps({"written_by": "simllm", "files": sorted(names)}, indent=1) + "\n"
    )


def _written(folder: Path) -> list[str] | None:
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


def _names(folder: Path) -> list[str]:
    """Return the names of all files and folders in a folder; no names if the folder is missing.

    Raises:
        InputError: The folder cannot be read.
    """
    try:
        return os.listdir(folder) if folder.is_dir() else []  # noqa: PTH208
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror})") from None


def _files(folder: Path) -> list[str]:
    """Return the relative paths of all files in a folder and the folders below; links count as files."""
    return [
        os.path.relpath(os.path.join(here, name), folder)  # noqa: PTH118
        for here, inner, names in os.walk(folder)
        for name in (*names, *(d for d in inner if os.path.islink(os.path.join(here, d))))  # noqa: PTH114, PTH118
    ]


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()
