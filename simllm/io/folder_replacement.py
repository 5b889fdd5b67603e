"""Atomic replacement of folders, which never leaves a folder half written.

A new folder is written beside the old one, under a temporary name. Then it takes the place of the old folder.
Files in the old folder that simllm did not write are kept. If the process is killed meanwhile, `recover`
repairs the folder.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

from safetensors import SafetensorError

from simllm.errors import InputError
from simllm.io import atomic_write, real_path
from simllm.io.file_lock import locked
from simllm.io.folder_marker import (
    MARKER,
    Marker,
    files_in,
    names_in,
    read_marker,
    remove_empty,
    sha256_of,
    write_marker,
    written_files,
)
from simllm.io.output_folder_check import check_replaceable

# Names of the temporary folders and the lock that a killed replacement of the folder NAME leaves.
_LEFTOVER = re.compile(r"\.(.+?)(?:\.[a-z0-9_]{8}\.(old|partial)|\.lock)")


@contextlib.contextmanager
def replacing(folder: Path, content: str, *, keep_edits: bool = True) -> Iterator[Path]:
    """Replace a folder atomically by the files that a `with` block writes.

    The block writes into a new temporary folder. After the block, the temporary folder replaces `folder`.
    Files in the old folder that simllm did not write are kept. If the block raises an exception, the old
    folder stays unchanged.

    Args:
        folder: The folder to replace; it may be missing.
        content: What the new folder holds, such as "a model". A folder with another content is not replaced.
        keep_edits: True: if the user changes a file of the new folder, a later replacement is refused, so
            that the change is not lost. False: changed files are replaced, which repairs damaged files.

    Yields:
        The path of the temporary folder.

    Raises:
        InputError: simllm may not replace the folder (see `check_replaceable`), another process is replacing
            it, or a file cannot be written.
    """
    check_replaceable(folder, content)
    folder = real_path.real(folder)
    with locked(folder):
        try:
            recover(folder)
            partial = _temporary_name(folder, "partial")
            partial.mkdir()
        except OSError as error:
            raise InputError(f"{folder}: cannot be written ({error.strerror})") from None
        try:
            write_marker(partial, Marker(content, []))
            yield partial
            names = [name for name in files_in(partial) if name != MARKER]
            hashed = [name for name in names if (partial / name).is_file()] if keep_edits else []
            sha256 = {name: sha256_of(partial / name) for name in hashed}
            write_marker(partial, Marker(content, names, sha256))
            _replace(partial, folder, content)
        except (OSError, SafetensorError) as error:
            raise InputError(f"{folder}: cannot be written ({error})") from None
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def remove(folder: Path) -> None:
    """Remove the files that simllm wrote into a folder; then remove the folder if it is empty."""
    for name in written_files(folder):
        above = list(Path(name).parents)[:-1]
        if not any((folder / path).is_symlink() for path in above):  # a link may lead out of the folder
            (folder / name).unlink(missing_ok=True)
    if files_in(folder) == [MARKER]:
        (folder / MARKER).unlink()
    for inner in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
        remove_empty(inner)
    remove_empty(folder)


def recover(folder: Path) -> None:
    """Repair a folder after a process was killed while it replaced the folder.

    If the new folder is already in place, the replacement is completed. Otherwise the replacement is undone:
    the old folder is moved back. Temporary folders beside `folder` are removed.
    """
    for left in _leftovers(folder, "old"):
        if read_marker(left) is None:
            remove_empty(left)  # killed while it was empty
        elif folder.exists():
            _keep_others(left, folder)
        else:
            left.rename(folder)
    for left in _leftovers(folder, "partial"):
        if read_marker(left) is None:  # killed before it had its marker
            for path in left.glob(f".{MARKER}.*.partial"):
                path.unlink()
            remove_empty(left)
        else:
            _discard(left)


def recover_all(parent: Path) -> None:
    """Clean up a folder after processes were killed while they wrote into the folder.

    If the replacement of a subfolder was interrupted, the replacement is completed or undone (see
    `recover`). Temporary files are removed. While this function runs, no other process may write into
    `parent`.

    Args:
        parent: A folder that simllm wrote, such as the folder of a training run.
    """
    matches = [match for match in map(_LEFTOVER.fullmatch, names_in(parent)) if match]
    for name in sorted({match[1] for match in matches}):
        with locked(parent / name):
            recover(parent / name)
    for match in matches:
        path = parent / match[0]
        if match[2] == "partial" and path.is_file() and not path.is_symlink():
            path.unlink()  # from a killed call of `atomic_write.write`


def _temporary_name(folder: Path, suffix: str) -> Path:
    """Return an unused path for a temporary folder beside `folder`: `.NAME.RANDOM.suffix`.

    Args:
        folder: The folder, which is called NAME.
        suffix: "partial" for a new folder that is being written; "old" for the old folder, which is moved
            away to make room for the new folder.
    """
    return folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}.{suffix}")


def _leftovers(folder: Path, suffix: str) -> list[Path]:
    """Find the temporary folders that remain because a process was killed while it replaced a folder.

    Args:
        folder: The folder that was to be replaced. The temporary folders are beside it.
        suffix: "partial" finds new folders that were still being written. "old" finds old folders that were
            moved away to make room for the new folder.
    """
    matches = (_LEFTOVER.fullmatch(name) for name in names_in(folder.parent))
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


def _replace(new: Path, folder: Path, content: str) -> None:
    """Replace `folder` by the folder `new`, but keep those files of `folder` that simllm did not write.

    Args:
        new: The new folder, which is moved to the place of the old one.
        folder: The old folder; it may be missing.
        content: What the new folder holds, such as "a model". A folder with another content is not replaced.

    Raises:
        InputError: simllm may not replace `folder` (see `check_replaceable`), or one of the files to keep is
            at the place of a new file or folder, or in a folder at the place of a new file.
    """
    for path in (*new.rglob("*"), new):
        atomic_write.sync(path)
    check_replaceable(folder, content)
    names = set(files_in(new))
    inner = {str(above) for name in names for above in Path(name).parents}  # the folders of the new files
    for name in sorted(_others(folder)):  # the user may have a folder where a new file comes, or vice versa
        if name in names or name in inner or names.intersection(map(str, Path(name).parents)):
            raise InputError(f"{folder / name}: was not written by simllm; move it away")
    old = None
    if names_in(folder):
        old = _temporary_name(folder, "old")
        folder.rename(old)
    new.rename(folder)
    atomic_write.sync(folder.parent)
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
    for name in _others(old):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if not (folder / name).exists():
            (old / name).rename(folder / name)
    remove(old)


def _others(folder: Path) -> set[str]:
    """Return the relative paths of all files in a folder except the files that simllm wrote."""
    return set(files_in(folder)) - {MARKER, *written_files(folder)}
