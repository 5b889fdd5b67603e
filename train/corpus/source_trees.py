"""Reading of code from source trees and git repositories."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePath

from simllm.errors import InputError
from simllm.io.files import printable
from train.corpus import git
from train.corpus.counts import Tally
from train.corpus.extract import LANGUAGES, LARGEST

_DEPENDENCIES = {"node_modules", "bower_components", "vendor", "third_party", "site-packages", "__pycache__"}
_LICENCES = ("licence", "license", "copying", "unlicense")


@dataclass(frozen=True)
class Code:
    """A file of code, with its repository and the name of the licence file of that repository."""

    data: bytes
    language: str
    path: str
    repository: str
    licence: str = ""


def read_folder(root: Path, tags: int, tally: Tally) -> Iterator[Code]:
    """Yield the code below a folder.

    Args:
        root: The folder. It is a git repository itself, or each of its subfolders is a repository.
        tags: Number of tagged revisions to read from git repositories, besides the newest.
        tally: Gets the counts of files and folders that are left out.
    """
    if repository := _repository(root, root, tally):
        yield from _revisions(repository, _name(root, 2), tags, tally)
        return
    for path, is_folder in _entries(root, tally):
        if is_folder:
            yield from _tree(path, root, tags, tally)
        else:
            yield from _file(path, root, _name(root), "", tally)


def read_installed_python(tally: Tally) -> Iterator[Code]:
    """Yield the code of the standard library and of installed packages; each package is a repository."""
    library, packages = installed_folders()
    for path, is_folder in _entries(library, tally):
        walk = _walk(path, tally) if is_folder else iter([path])
        for file in walk:
            yield from _file(file, library, "python", "LICENSE", tally)
    licences = _installed_licences()
    for path, is_folder in _entries(packages, tally):
        walk = _walk(path, tally) if is_folder else iter([path])
        for file in walk:
            yield from _file(file, packages, printable(path.stem), licences.get(path.stem, ""), tally)


def installed_folders() -> tuple[Path, Path]:
    """Return the folders of the standard library and of the installed packages of this Python."""
    library, packages = (Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib"))
    return library, packages


def _name(folder: Path, parts: int = 1) -> str:
    """Return the last names of a folder's path, as the name of its repository."""
    return printable("/".join(folder.resolve().parts[-parts:]))


def _tree(top: Path, root: Path, tags: int, tally: Tally) -> Iterator[Code]:
    """Yield the code in a folder of `root`, and in the git repositories in that folder."""
    licence = _licence(_names(top))
    repositories: list[git.RepositoryPaths] = []
    for file in _walk(top, tally, repositories, root):
        yield from _file(file, top, printable(top.name), licence, tally)
    for inner in repositories:
        yield from _revisions(inner, printable(inner.folder.relative_to(root).as_posix()), tags, tally)


def _names(folder: Path) -> list[str]:
    """Return the names in a folder; none if it cannot be read."""
    try:
        return [printable(name) for name in os.listdir(folder)]  # noqa: PTH208
    except OSError:  # counted when its files are read
        return []


def _walk(
    top: Path, tally: Tally, repositories: list[git.RepositoryPaths] | None = None, root: Path | None = None
) -> Iterator[Path]:
    """Yield the files below a folder, sorted.

    If `repositories` is given, git repositories are not walked, but appended to it.
    """
    folders = [top]
    while folders:
        here = folders.pop()
        if repositories is not None and root and (repository := _repository(here, root, tally)):
            repositories.append(repository)
            continue
        inner = []
        for path, is_folder in _entries(here, tally):
            if is_folder:
                inner.append(path)
            else:
                yield path
        folders += reversed(inner)


def _repository(folder: Path, root: Path, tally: Tally) -> git.RepositoryPaths | None:
    """Return the git repository of a folder; None if there is none, or if it is outside of `root`."""
    try:
        return git.find_repository(folder, root)
    except InputError as error:
        tally.add("git folder elsewhere", str(error))
        return None


def _entries(here: Path, tally: Tally) -> list[tuple[Path, bool]]:
    """Return the sorted entries of a folder, and whether each is a folder.

    Links, hidden folders and folders of dependencies are left out.
    """
    paths = []
    try:
        with os.scandir(here) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.is_dir(follow_symlinks=False):
                    if not _is_skipped(entry.name):
                        paths.append((Path(entry.path), True))
                elif entry.is_file(follow_symlinks=False):
                    paths.append((Path(entry.path), False))
                else:
                    tally.add("symbolic link" if entry.is_symlink() else "no file", printable(entry.path))
    except OSError as error:
        tally.add("unreadable folder", f"{printable(here)}: {error.strerror}")
    return paths


def _file(file: Path, root: Path, repository: str, licence: str, tally: Tally) -> Iterator[Code]:
    """Yield a file if it is code that can be read."""
    language = LANGUAGES.get(file.suffix)
    if not language:
        return
    try:
        with file.open("rb") as opened:
            data = opened.read(LARGEST + 1)
            size = os.fstat(opened.fileno()).st_size
    except OSError as error:
        tally.add("unreadable file", f"{printable(file)}: {error.strerror}")
        return
    if len(data) > LARGEST:
        tally.add("file too large", f"{printable(file)}: {size:,} bytes")
    else:
        yield Code(data, language, printable(file.relative_to(root).as_posix()), repository, licence)


def _revisions(location: git.RepositoryPaths, name: str, tags: int, tally: Tally) -> Iterator[Code]:
    """Yield the code of the revisions of a git repository; unchanged files are read once."""
    name, seen = name.removesuffix(".git"), set[str]()
    try:
        with git.open_repository(location) as repository:
            for revision in [repository.head, *_tags(repository, tags, tally)]:
                try:
                    yield from _revision(repository, revision, name, seen, tally)
                except InputError as error:
                    tally.add("unreadable revision", str(error))
    except InputError as error:
        tally.add("unreadable repository", str(error))


def _tags(repository: git.Repository, most: int, tally: Tally) -> list[str]:
    """Return the tagged revisions to read; none if the tags cannot be read."""
    try:
        return repository.tags(most) if most else []
    except InputError as error:
        tally.add("unreadable tags", str(error))
        return []


def _revision(
    repository: git.Repository, revision: str, name: str, seen: set[str], tally: Tally
) -> Iterator[Code]:
    """Yield the code of a revision, without files that were `seen` in another revision."""
    code_files = []
    files = repository.files(revision)
    for entry in files:
        path = PurePath(entry.path)
        if path.suffix not in LANGUAGES or any(map(_is_skipped, path.parts[:-1])) or entry.blob in seen:
            continue
        seen.add(entry.blob)
        if entry.size > LARGEST:
            tally.add("file too large", f"{repository.folder}: {entry.path}: {entry.size:,} bytes")
        else:
            code_files.append(entry)
    licence = _licence([entry.path for entry in files])
    contents = repository.contents(entry.blob for entry in code_files)
    for entry, data in zip(code_files, contents, strict=True):
        if data is None:
            tally.add("unreadable file", f"{repository.folder}: {entry.path}: not in the repository")
        else:
            yield Code(data, LANGUAGES[PurePath(entry.path).suffix], entry.path, name, licence)


def _is_skipped(folder: str) -> bool:
    """Return whether a folder is hidden, or has dependencies, by its name."""
    return folder.startswith(".") or folder in _DEPENDENCIES


def _licence(names: list[str]) -> str:
    """Return the first licence file among names; "" if there is none."""
    return min((name for name in names if name.lower().startswith(_LICENCES)), default="")


def _installed_licences() -> dict[str, str]:
    """Return the licence file of each installed package, relative to site-packages."""
    licences = {}
    for name, distributions in metadata.packages_distributions().items():
        try:
            files = metadata.files(distributions[0]) or []
        except (ValueError, metadata.PackageNotFoundError):  # a broken installation
            continue
        licences[name] = min((str(f) for f in files if f.name.lower().startswith(_LICENCES)), default="")
    return licences
