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
