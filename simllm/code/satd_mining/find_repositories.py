"""Search for git repositories in folders and their subfolders."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from simllm.code.git_directory import RepositoryPaths, find_repository
from simllm.errors import InputError
from simllm.io.printable_path import printable


@dataclass(frozen=True)
class NamedRepository:
    """A git repository and its name.

    Attributes:
        name: The path relative to the folder that the user named, without the ending ".git". If the user
            named the repository's own folder, this is the name of that folder.
    """

    name: str
    paths: RepositoryPaths


def find_repositories(folders: Iterable[Path]) -> list[NamedRepository]:
    """Find all git repositories in folders and their subfolders, sorted by name.

    Hidden folders and symbolic links to folders are skipped. Two repositories of one name are an
    `InputError`.
    """
    found: dict[str, NamedRepository] = {}
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"{folder}: expected a folder of git repositories")
        inside = list(_below(folder))
        if not inside:
            raise InputError(f"{folder}: no git repository in it")
        for repository in inside:
            same = found.setdefault(repository.name, repository)
            if same.paths.own != repository.paths.own:
                names = f"{same.paths.folder} and {repository.paths.folder}"
                raise InputError(f"{names}: both are called {same.name}; name a folder above both of them")
    return [found[name] for name in sorted(found)]


def _below(root: Path) -> Iterator[NamedRepository]:
    """Yield the git repositories in `root`; skip with a warning those with git's own files elsewhere."""
    for here, inner, _ in os.walk(root):
        folder = Path(here)
        try:
            paths = find_repository(folder, root)
        except InputError as error:
            warnings.warn(str(error), stacklevel=2)
            inner.clear()
            continue
        if paths:
            name = folder.relative_to(root).as_posix() if folder != root else root.resolve().name
            yield NamedRepository(printable(name).removesuffix(".git"), paths)
            inner.clear()
        else:
            inner[:] = [name for name in inner if not name.startswith(".")]
