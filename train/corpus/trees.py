"""Finds the code in source trees and git repositories."""

from __future__ import annotations

import os
import stat
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePath

from simllm.errors import InputError
from train.corpus import git
from train.corpus.extract import LANGUAGES, LARGEST
from train.corpus.tally import Tally

_NOT_OWN = {"node_modules", "bower_components", "vendor", "third_party", "site-packages", "__pycache__"}
_LICENCES = ("licence", "license", "copying", "unlicense")


@dataclass(frozen=True)
class Code:
    """A file of code."""

    data: bytes
    language: str
    path: str
    repository: str
    licence: str = ""  # the name of the repository's licence file


def folder(root: Path, tags: int, tally: Tally) -> Iterator[Code]:
    """The code below a folder. A git repository is one repository, and so is a folder in `root`."""
    if git.is_repository(root):
        yield from _revisions(root, "/".join(root.resolve().parts[-2:]), tags, tally)
        return
    for path, is_folder in _entries(root, tally):
        if is_folder:
            yield from _tree(path, root, tags, tally)
        else:
            yield from _file(path, root, root.resolve().name, "", tally)


def installed_python(tally: Tally) -> Iterator[Code]:
    """This Python's standard library and installed packages; every top-level name is a repository."""
    library, packages = (Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib"))
    for path, is_folder in _entries(library, tally):
        walk = _walk(path, tally) if is_folder else iter([path])
        for file in walk:
            yield from _file(file, library, "python", "LICENSE", tally)
    licences = _installed_licences()
    for path, is_folder in _entries(packages, tally):
        walk = _walk(path, tally) if is_folder else iter([path])
        for file in walk:
            yield from _file(file, packages, path.stem, licences.get(path.stem, ""), tally)


def _tree(top: Path, root: Path, tags: int, tally: Tally) -> Iterator[Code]:
    """A folder of `root`, with the git repositories in it, if any, read as such."""
    licence = _licence(os.listdir(top)) if os.access(top, os.R_OK) else ""  # noqa: PTH208
    repositories: list[Path] = []
    for file in _walk(top, tally, repositories):
        yield from _file(file, top, top.name, licence, tally)
    for inner in repositories:
        yield from _revisions(inner, inner.relative_to(root).as_posix(), tags, tally)


def _walk(top: Path, tally: Tally, repositories: list[Path] | None = None) -> Iterator[Path]:
    """The files below a folder, sorted; git repositories are left out and listed, where asked."""
    folders = [top]
    while folders:
        here = folders.pop()
        if repositories is not None and git.is_repository(here):
            repositories.append(here)
            continue
        inner = []
        for path, is_folder in _entries(here, tally):
            if is_folder:
                inner.append(path)
            else:
                yield path
        folders += reversed(inner)


def _entries(here: Path, tally: Tally) -> list[tuple[Path, bool]]:
    """The files and folders in a folder, sorted, without links, hidden ones and dependencies."""
    found = []
    try:
        with os.scandir(here) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                mode = entry.stat(follow_symlinks=False).st_mode
                if stat.S_ISDIR(mode) and not _foreign(entry.name):
                    found.append((Path(entry.path), True))
                elif stat.S_ISREG(mode):
                    found.append((Path(entry.path), False))
                elif stat.S_ISLNK(mode):
                    tally.add("symbolic link", entry.path)
    except OSError as error:
        tally.add("unreadable folder", f"{here}: {error.strerror}")
    return found


def _file(file: Path, root: Path, repository: str, licence: str, tally: Tally) -> Iterator[Code]:
    language = LANGUAGES.get(file.suffix)
    if not language:
        return
    try:
        if (size := file.stat().st_size) > LARGEST:
            tally.add("file too large", f"{file}: {size:,} bytes")
            return
        data = file.read_bytes()
    except OSError as error:
        tally.add("unreadable file", f"{file}: {error.strerror}")
        return
    path = file.relative_to(root).as_posix().encode("utf-8", "replace").decode()
    yield Code(data, language, path, repository, licence)


def _revisions(root: Path, name: str, tags: int, tally: Tally) -> Iterator[Code]:
    """The code of a git repository's revisions; a file that did not change is read once."""
    repository, name, seen = git.Repository(root), name.removesuffix(".git"), set()
    try:
        for revision in repository.revisions(tags):
            files, wanted = repository.files(revision), []
            licence = _licence([entry.path for entry in files])
            for entry in files:
                path = PurePath(entry.path)
                if path.suffix not in LANGUAGES or any(map(_foreign, path.parts[:-1])) or entry.blob in seen:
                    continue
                seen.add(entry.blob)
                if entry.size > LARGEST:
                    tally.add("file too large", f"{root}: {entry.path}: {entry.size:,} bytes")
                else:
                    wanted.append(entry)
            contents = repository.contents(entry.blob for entry in wanted)
            for entry, data in zip(wanted, contents, strict=True):
                if data is None:
                    tally.add("unreadable file", f"{root}: {entry.path}: not in the repository")
                else:
                    yield Code(data, LANGUAGES[PurePath(entry.path).suffix], entry.path, name, licence)
    except InputError as error:
        tally.add("unreadable repository", str(error))


def _foreign(folder: str) -> bool:
    """Whether a folder of this name holds other people's code, or none."""
    return folder.startswith(".") or folder in _NOT_OWN


def _licence(names: list[str]) -> str:
    return min((name for name in names if name.lower().startswith(_LICENCES)), default="")


def _installed_licences() -> dict[str, str]:
    """The licence file of each top-level name that is installed, from site-packages."""
    found = {}
    for name, distributions in metadata.packages_distributions().items():
        files = metadata.files(distributions[0]) or []
        found[name] = min((str(f) for f in files if f.name.lower().startswith(_LICENCES)), default="")
    return found
