"""Safe reading of the refs of an untrusted git repository, without git.

A ref, such as a branch or a tag, is a name for a git object.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from simllm.code.git_directory import RepositoryPaths, read_start, regular_files

HASH = re.compile(rb"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
LARGEST_REFS = 1 << 26  # bytes of a file with refs that are read


def packed_refs(common: Path) -> dict[str, str]:
    """Read git's file `packed-refs`, a list of branches and tags.

    Args:
        common: The folder that contains the file.

    Returns:
        A dict from the name of each ref (branch or tag) to the hash of the object that it points to. The dict
        is empty if there is no such file.
    """
    rows = (line.partition(b" ") for line in read_start(common / "packed-refs", LARGEST_REFS).splitlines())
    return {os.fsdecode(name): sha.decode() for sha, _, name in rows if HASH.match(sha)}


def resolve_ref(name: str, location: RepositoryPaths, packed: Mapping[str, str]) -> str:
    """Return the hash of the object that a ref points to; "" if there is no such ref.

    Args:
        name: The name of the ref, such as "HEAD" or "refs/tags/v1".
        location: The folders of the repository.
        packed: The refs in the file `packed-refs`, from the function `packed_refs`.
    """
    folder = location.own if name == "HEAD" else location.common
    for _ in range(5):  # a ref may point to another ref
        data = read_start(folder / name, 4096).strip()
        if HASH.match(data):
            return data.decode()
        if not data.startswith(b"ref: refs/"):
            return packed.get(name, "")
        name = os.fsdecode(data.removeprefix(b"ref: "))
        folder = location.common
        if "\0" in name or ".." in Path(name).parts:
            break
    return ""


def tag_refs(location: RepositoryPaths, packed: Mapping[str, str]) -> dict[str, str]:
    """Find the tags of a repository.

    Args:
        location: The folders of the repository.
        packed: The refs in the file `packed-refs`, from the function `packed_refs`.

    Returns:
        A dict from the name of each tag, such as "refs/tags/v1", to the hash of the object that it points to.
    """
    tags = {name: sha for name, sha in packed.items() if name.startswith("refs/tags/")}
    for file in regular_files(location.common / "refs" / "tags"):
        name = file.relative_to(location.common).as_posix()
        if sha := resolve_ref(name, location, packed):
            tags[name] = sha
    return tags
