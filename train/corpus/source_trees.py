"""Source files of folders, git repositories and installed packages."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePath

from simllm.code.git_folders import RepositoryPaths, find_repository
from simllm.code.git_repository import Repository, open_repository
from simllm.code.languages.language import LANGUAGE_OF_SUFFIX
from simllm.code.source_files import LARGEST, is_skipped_folder
from simllm.errors import InputError
from simllm.io.tables import printable
from train.corpus.parts import Tally

_LICENCES = ("licence", "license", "copying", "unlicense")


@dataclass(frozen=True)
class Code:
    """A file of source code.

    Attributes:
        path: The path in the repository.
        licence: The name of the licence file in the repository; "" if there is none.
    """

    data: bytes
    language: str
    path: str
    repository: str
    licence: str = ""


def read_folder(root: Path, tags: int, tally: Tally) -> Iterator[Code]:
    """Yield the source files below a root, with up to `tags` tagged revisions of each git repository.

    A git repository at any depth counts as a repository, and so does each other direct subfolder.
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
    """Yield the source files of Python's standard library and of all installed packages."""
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
    """Return the folder of Python's standard library, and the folder of the installed packages."""
    library, packages = (Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib"))
    return library, packages


def _name(folder: Path, parts: int = 1) -> str:
    """Return the last components of a folder's path, such as "owner/name", as the name of a repository."""
    return printable("/".join(folder.resolve().parts[-parts:]))


def _tree(top: Path, root: Path, tags: int, tally: Tally) -> Iterator[Code]:
    """Yield the source files below a folder of the root, and those of the git repositories inside it."""
    licence = _licence(_names(top))
    repositories: list[RepositoryPaths] = []
    for file in _walk(top, tally, repositories, root):
        yield from _file(file, top, printable(top.name), licence, tally)
    for inner in repositories:
        yield from _revisions(inner, printable(inner.folder.relative_to(root).as_posix()), tags, tally)


def _names(folder: Path) -> list[str]:
    """Return the names of the entries of a folder; an empty list if it cannot be read."""
    try:
        return [printable(name) for name in os.listdir(folder)]  # noqa: PTH208
    except OSError:  # counted when the files of the folder are read
        return []


def _walk(
    top: Path, tally: Tally, repositories: list[RepositoryPaths] | None = None, root: Path | None = None
) -> Iterator[Path]:
    """Yield the files below a folder, sorted by name in each folder.

    Git repositories whose data is in `root` are added to `repositories` instead (None: they are plain
    folders).
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
        # The list is a stack: its last folder is next.
        folders += reversed(inner)


def _repository(folder: Path, root: Path, tally: Tally) -> RepositoryPaths | None:
    """Find the git repository (perhaps bare) in a folder; None if there is none that may be read."""
    try:
        # A linked work tree may have its data elsewhere; nothing outside of the root may be read.
        return find_repository(folder, root)
    except InputError as error:
        tally.add("git folder elsewhere", str(error))
        return None


def _entries(here: Path, tally: Tally) -> list[tuple[Path, bool]]:
    """List the paths in a folder by name, with whether each is a folder; links and skipped folders are left
    out.
    """
    paths = []
    try:
        with os.scandir(here) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.is_dir(follow_symlinks=False):
                    if not is_skipped_folder(entry.name):
                        paths.append((Path(entry.path), True))
                elif entry.is_file(follow_symlinks=False):
                    paths.append((Path(entry.path), False))
                else:
                    tally.add("symbolic link" if entry.is_symlink() else "no file", printable(entry.path))
    except OSError as error:
        tally.add("unreadable folder", f"{printable(here)}: {error.strerror}")
    return paths


def _file(file: Path, root: Path, repository: str, licence: str, tally: Tally) -> Iterator[Code]:
    """Yield a source file, unless its language is unknown, it cannot be read, or it is too large."""
    language = LANGUAGE_OF_SUFFIX.get(file.suffix)
    if not language:
        return
    try:
        with file.open("rb") as opened:
            # One byte more than allowed shows that a file is too large, without reading all of it.
            data = opened.read(LARGEST + 1)
            size = os.fstat(opened.fileno()).st_size
    except OSError as error:
        tally.add("unreadable file", f"{printable(file)}: {error.strerror}")
        return
    if len(data) > LARGEST:
        tally.add("file too large", f"{printable(file)}: {size:,} bytes")
    else:
        yield Code(data, language, printable(file.relative_to(root).as_posix()), repository, licence)


def _revisions(location: RepositoryPaths, name: str, tags: int, tally: Tally) -> Iterator[Code]:
    """Yield the source files of the current commit and of tagged revisions, without repeating unchanged
    files.
    """
    name, seen = name.removesuffix(".git"), set[str]()
    try:
        repository = open_repository(location)
        for revision in [repository.head, *_tags(repository, tags, tally)]:
            try:
                yield from _revision(repository, revision, name, seen, tally)
            except InputError as error:
                tally.add("unreadable revision", str(error))
    except InputError as error:
        tally.add("unreadable repository", str(error))


def _tags(repository: Repository, limit: int, tally: Tally) -> list[str]:
    """Return the hashes of at most `limit` tagged revisions, newest first; none if git cannot read them."""
    try:
        return repository.tags(limit) if limit else []
    except InputError as error:
        tally.add("unreadable tags", str(error))
        return []


def _revision(
    repository: Repository, revision: str, name: str, seen: set[str], tally: Tally
) -> Iterator[Code]:
    """Yield the source files in one revision whose hashes are not in `seen`, and add these hashes."""
    code_files = []
    files = repository.files(revision)
    for entry in files:
        path = PurePath(entry.path)
        if (
            path.suffix not in LANGUAGE_OF_SUFFIX
            or any(map(is_skipped_folder, path.parts[:-1]))
            or entry.blob in seen
        ):
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
            yield Code(data, LANGUAGE_OF_SUFFIX[PurePath(entry.path).suffix], entry.path, name, licence)


def _licence(names: list[str]) -> str:
    """Return the first licence file among some file names in sorted order; "" if there is none."""
    return min((name for name in names if name.lower().startswith(_LICENCES)), default="")


def _installed_licences() -> dict[str, str]:
    """Map import names to the licence files of their packages, relative to `site-packages` ("" if none)."""
    licences = {}
    for name, distributions in metadata.packages_distributions().items():
        try:
            files = metadata.files(distributions[0]) or []
        except (ValueError, metadata.PackageNotFoundError):  # a broken installation
            continue
        licences[name] = min((str(f) for f in files if f.name.lower().startswith(_LICENCES)), default="")
    return licences
