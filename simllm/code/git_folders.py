"""The folders of an untrusted git repository, and its refs, read without git.

The configuration of a repository can make git run commands, and its links and alternates can lead to other
folders of the machine.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from simllm.errors import InputError
from simllm.io.output_file import real


@dataclass(frozen=True)
class RepositoryPaths:
    """The folders of a git repository.

    Attributes:
        folder: The work tree (the folder with the checked-out files), or the bare repository.
        own: The git directory (the folder that contains the file HEAD), such as `.git`.
        common: The folder of refs and objects, usually the same as `own`. A linked work tree, made by `git
            worktree add`, shares it with another work tree.
    """

    folder: Path
    own: Path
    common: Path


def find_repository(folder: Path, root: Path) -> RepositoryPaths | None:
    """Find the folders of the repository at a folder, not above it; None if it is no repository.

    All must be inside `root`, which the user named: an untrusted repository must not lead to other folders of
    the machine.
    """
    own = _git_folder(folder)
    if not own:
        return None
    own = real(own)
    # A linked work tree has this file; it leads to the folder that it shares.
    elsewhere = read_start(own / "commondir", 4096).strip()
    common = real(_path(own, elsewhere)) if elsewhere else own
    for path in (own, common, real(common / "objects")):
        if not path.is_relative_to(real(root)):
            raise InputError(f"{folder}: its git folder {path} is outside of {root}")
    return RepositoryPaths(folder, own, common)


def _git_folder(folder: Path) -> Path | None:
    """Find the subfolder `.git`, the folder that a file `.git` names, or a bare repository itself."""
    inner = folder / ".git"
    if os.path.isdir(inner):  # noqa: PTH112 (Path.is_dir raises for names that are too long)
        return inner
    if pointer := read_start(inner, 4096).strip():
        name = pointer.removeprefix(b"gitdir:").strip()
        return _path(folder, name) if pointer.startswith(b"gitdir:") else None
    head, *folders = (folder / name for name in ("HEAD", "objects", "refs"))
    return folder if os.path.isfile(head) and all(map(os.path.isdir, folders)) else None  # noqa: PTH113


def _path(folder: Path, name: bytes) -> Path:
    """Join a folder and a file name from an untrusted file."""
    # A zero byte would make each call of the operating system raise ValueError.
    return folder / os.fsdecode(name.partition(b"\0")[0])


def check_objects(folder: Path, objects: Path) -> None:
    """Refuse a repository whose objects git cannot read safely, or that are not all in `objects`."""
    # Git would follow alternates and links to other folders, and wait for ever for a pipe.
    if read_start(objects / "info" / "alternates", 1):
        raise InputError(f"{folder}: has objects in other repositories (objects/info/alternates)")
    for file in regular_files(objects, special=True):
        raise InputError(f"{folder}: {file} is a link or no file")


def regular_files(top: Path, special: bool = False) -> Iterator[Path]:
    """Yield the regular files in a folder and its subfolders; with `special`, links, pipes and devices."""
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
        # Opening a pipe would wait for ever.
        if not stat.S_ISREG(os.stat(file).st_mode):  # noqa: PTH116
            return b""
        with file.open("rb") as data:
            return data.read(limit)
    except (OSError, ValueError):
        return b""


HASH = re.compile(rb"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
LARGEST_REFS = 1 << 26  # bytes of a file with refs that are read


def packed_refs(common: Path) -> dict[str, str]:
    """Read the hashes of refs from git's file `packed-refs`; empty if there is none."""
    rows = (line.partition(b" ") for line in read_start(common / "packed-refs", LARGEST_REFS).splitlines())
    return {os.fsdecode(name): sha.decode() for sha, _, name in rows if HASH.match(sha)}


def resolve_ref(name: str, location: RepositoryPaths, packed: Mapping[str, str]) -> str:
    """Return the hash of the object that a ref, such as "HEAD" or "refs/tags/v1", points to; "" if none.

    `packed` comes from `packed_refs`.
    """
    # A linked work tree has a HEAD of its own.
    folder = location.own if name == "HEAD" else location.common
    for _ in range(5):  # a ref may point to another ref
        data = read_start(folder / name, 4096).strip()
        if HASH.match(data):
            return data.decode()
        if not data.startswith(b"ref: refs/"):
            return packed.get(name, "")
        name = os.fsdecode(data.removeprefix(b"ref: "))
        folder = location.common
        # The name comes from the repository and must not lead out of it.
        if "\0" in name or ".." in Path(name).parts:
            break
    return ""


def tag_refs(location: RepositoryPaths, packed: Mapping[str, str]) -> dict[str, str]:
    """Return the hashes of the objects that the tags, such as "refs/tags/v1", point to."""
    tags = {name: sha for name, sha in packed.items() if name.startswith("refs/tags/")}
    # A file of its own counts before the line in `packed-refs`, which may be older.
    for file in regular_files(location.common / "refs" / "tags"):
        name = file.relative_to(location.common).as_posix()
        if sha := resolve_ref(name, location, packed):
            tags[name] = sha
    return tags
