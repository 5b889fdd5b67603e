"""Functions that find the folders of an untrusted git repository, such as `.git`, and read files in them.

Git is not run, because the configuration of a repository can make git run commands. This module finds the
folders in which the repository stores HEAD, refs and objects. It also reads the beginnings of files, and
checks that git can read the repository's objects safely.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from simllm.errors import InputError
from simllm.io.real_path import real


@dataclass(frozen=True)
class RepositoryPaths:
    """The folders of a git repository.

    Attributes:
        folder: The work tree (the folder with the checked-out files), or the bare repository.
        own: The git directory (the folder that contains the file HEAD), such as `.git`.
        common: The folder that contains the refs (branches and tags) and the objects. Usually, this is the
            same folder as `own`. But a linked work tree, made by `git worktree add`, shares the folder
            `common` with another work tree, and only has a HEAD of its own.
    """

    folder: Path
    own: Path
    common: Path


def find_repository(folder: Path, root: Path) -> RepositoryPaths | None:
    """Check whether a folder is a git repository, and find the folders with its data.

    Folders above the given folder are not searched.

    Args:
        folder: The folder, which may be a work tree or a bare repository.
        root: The folder that the user named. All folders of the repository must be inside it, so that an
            untrusted repository cannot lead to other folders of the machine.

    Returns:
        The folders of the repository; None if `folder` is not a repository.

    Raises:
        InputError: A folder of the repository is outside of `root`.
    """
    own = _git_folder(folder)
    if not own:
        return None
    own = real(own)
    elsewhere = read_start(own / "commondir", 4096).strip()
    common = real(_path(own, elsewhere)) if elsewhere else own
    for path in (own, common, real(common / "objects")):
        if not path.is_relative_to(real(root)):
            raise InputError(f"{folder}: its git folder {path} is outside of {root}")
    return RepositoryPaths(folder, own, common)


def _git_folder(folder: Path) -> Path | None:
    """Find the git directory of a repository, such as `.git`.

    Args:
        folder: A folder, which may be a work tree or a bare repository.

    Returns:
        The git directory: the subfolder `.git`, the folder that a file `.git` names, or `folder` itself if it
        is a bare repository. None if `folder` is not a repository.
    """
    inner = folder / ".git"
    if os.path.isdir(inner):  # noqa: PTH112 (Path.is_dir raises for names that are too long)
        return inner
    if pointer := read_start(inner, 4096).strip():
        name = pointer.removeprefix(b"gitdir:").strip()
        return _path(folder, name) if pointer.startswith(b"gitdir:") else None
    head, *folders = (folder / name for name in ("HEAD", "objects", "refs"))
    return folder if os.path.isfile(head) and all(map(os.path.isdir, folders)) else None  # noqa: PTH113


def _path(folder: Path, name: bytes) -> Path:
    """Join a folder and a file name that is given as bytes.

    The name comes from an untrusted file, and may contain zero bytes, which paths must not contain. Only the
    part of the name before the first zero byte is used.
    """
    return folder / os.fsdecode(name.partition(b"\0")[0])


def check_objects(folder: Path, objects: Path) -> None:
    """Check that git can read a repository's objects safely.

    Reading is safe if all objects are regular files in the folder `objects`. In other cases, git could follow
    a link to another folder, or wait forever for a pipe.

    Args:
        folder: The folder of the repository, for error messages.
        objects: The folder of the objects.

    Raises:
        InputError: The folder `objects` has links, pipes or devices, or refers to objects in other folders.
    """
    if read_start(objects / "info" / "alternates", 1):
        raise InputError(f"{folder}: has objects in other repositories (objects/info/alternates)")
    for file in regular_files(objects, special=True):
        raise InputError(f"{folder}: {file} is a link or no file")


def regular_files(top: Path, special: bool = False) -> Iterator[Path]:
    """Yield the paths of the regular files in a folder and its subfolders.

    Args:
        top: The folder.
        special: Whether to yield links, pipes and devices instead of regular files.
    """
    folders = [top]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(Path(entry.path))
                    elif entry.is_file(follow_symlinks=False) is not special:
                        yield Path(entry.path)
        except OSError:
            continue  # git reports missing files itself


def read_start(file: Path, limit: int) -> bytes:
    """Return the first `limit` bytes of a file; b"" if it is not a regular file or cannot be read."""
    try:
        if not stat.S_ISREG(os.stat(file).st_mode):  # noqa: PTH116
            return b""
        with file.open("rb") as data:
            return data.read(limit)
    except (OSError, ValueError):
        return b""
