"""Reading of code from source trees and git repositories."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePath

from simllm.code.git_directory import RepositoryPaths, find_repository
from simllm.code.git_repository import Repository, open_repository
from simllm.code.languages.language_registry import LANGUAGE_OF_SUFFIX
from simllm.errors import InputError
from simllm.io.printable_path import printable
from train.corpus.skip_counts import Tally
from train.corpus.source_file_filters import LARGEST, is_skipped_folder

_LICENCES = ("licence", "license", "copying", "unlicense")


@dataclass(frozen=True)
class Code:
    """A file of source code.

    Attributes:
        data: The content.
        language: The programming language.
        path: The path in the repository.
        repository: The name of the repository.
        licence: The name of the licence file in the repository; "" if there is none.
    """

    data: bytes
    language: str
    path: str
    repository: str
    licence: str = ""


def read_folder(root: Path, tags: int, tally: Tally) -> Iterator[Code]:
    """Yield the source files in a folder and its subfolders.

    Args:
        root: The folder. Each source file is yielded with the name of its repository. If `root` is a git
            repository, all its files belong to this repository. Otherwise, each direct subfolder of `root`
            counts as a repository, and so does each git repository at any depth below `root`.
        tags: Number of tagged revisions to read from each git repository, besides the current commit.
        tally: Counter of files and folders that are left out; it is updated.
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
    """Yield the source files of Python's standard library and of all installed packages.

    Args:
        tally: Counter of files and folders that are left out; it is updated.
    """
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
    """Return the name of a repository, taken from the path of its folder, such as "name" or "owner/name".

    Args:
        folder: The folder of the repository.
        parts: How many components at the end of the path form the name: 2 for "owner/name".
    """
    return printable("/".join(folder.resolve().parts[-parts:]))


def _tree(top: Path, root: Path, tags: int, tally: Tally) -> Iterator[Code]:
    """Yield the source files in a folder, in its subfolders, and in the git repositories inside them.

    Args:
        top: The folder, which is inside `root`.
        root: The folder that the user named. A git repository with data outside of `root` is treated like
            other folders.
        tags: Number of tagged revisions to read from each git repository, besides the current commit.
        tally: Counter of files and folders that are left out; it is updated.
    """
    licence = _licence(_names(top))
    repositories: list[RepositoryPaths] = []
    for file in _walk(top, tally, repositories, root):
        yield from _file(file, top, printable(top.name), licence, tally)
    for inner in repositories:
        yield from _revisions(inner, printable(inner.folder.relative_to(root).as_posix()), tags, tally)


def _names(folder: Path) -> list[str]:
    """Return the names of the files and folders in a folder; an empty list if it cannot be read."""
    try:
        return [printable(name) for name in os.listdir(folder)]  # noqa: PTH208
    except OSError:  # counted when its files are read
        return []


def _walk(
    top: Path,
    tally: Tally,
    repositories: list[RepositoryPaths] | None = None,
    root: Path | None = None,
) -> Iterator[Path]:
    """Yield the files below a folder, sorted by name in each folder.

    Args:
        top: The folder.
        tally: Counter of files and folders that are left out; it is updated.
        repositories: A list that collects the git repositories at or below `top`. The files of a collected
            repository are not yielded. None: git repositories are treated like other folders.
        root: The folder that the user named. A git repository is collected only if all its data is in `root`.
            Otherwise it is treated like other folders. None if `repositories` is None.
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


def _repository(folder: Path, root: Path, tally: Tally) -> RepositoryPaths | None:
    """Find the git repository in a folder, and return its paths if the repository may be read.

    A repository may be read only if all its data is in `root`. For example, a linked work tree may have its
    data elsewhere. A repository with data outside of `root` is counted in `tally`.

    Args:
        folder: The folder, which may be a work tree or a bare repository. Its parents are not searched.
        root: The folder that the user named. Nothing outside of it may be read.
        tally: Counter of folders that are left out; it is updated.

    Returns:
        The folders of the repository. None if the folder is no repository, or the repository has data outside
        of `root`.
    """
    try:
        return find_repository(folder, root)
    except InputError as error:
        tally.add("git folder elsewhere", str(error))
        return None


def _entries(here: Path, tally: Tally) -> list[tuple[Path, bool]]:
    """List the files and folders in a folder, sorted by name.

    Hidden folders and folders of dependencies, such as `node_modules`, are left out.

    Args:
        here: The folder.
        tally: Counter of links and other special files, which are left out; it is updated. If the folder
            cannot be read, the folder is counted.

    Returns:
        Pairs: a path, and a bool that is true for a folder.
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
    """Yield a source file, unless its language is unknown, it cannot be read, or it is too large.

    Args:
        file: The path of the file.
        root: The folder of the repository, to which the yielded path is relative.
        repository: The name of the repository.
        licence: The name of the licence file.
        tally: Counter of files that are left out; it is updated.
    """
    language = LANGUAGE_OF_SUFFIX.get(file.suffix)
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


def _revisions(location: RepositoryPaths, name: str, tags: int, tally: Tally) -> Iterator[Code]:
    """Yield the source files in several revisions of a git repository, without repeating unchanged files.

    Args:
        location: The folders of the repository.
        name: The name of the repository.
        tags: Number of tagged revisions to read, besides the current commit.
        tally: Counter of files and revisions that are left out; it is updated.
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
    """Return the hashes of at most `limit` tagged revisions, newest first.

    If git cannot read the tags, the list is empty, and the failure is counted once in `tally`.
    """
    try:
        return repository.tags(limit) if limit else []
    except InputError as error:
        tally.add("unreadable tags", str(error))
        return []


def _revision(
    repository: Repository, revision: str, name: str, seen: set[str], tally: Tally
) -> Iterator[Code]:
    """Yield the source files in one revision of a git repository.

    Args:
        repository: The open repository.
        revision: The hash of a commit or tag.
        name: The name of the repository.
        seen: Hashes of files that were already read from other revisions. Files with these hashes are
            skipped. The hashes of all other source files are added to the set.
        tally: Counter of files that are left out; it is updated.
    """
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
    """Return the name of the licence file among the given file names; "" if there is none.

    If there are several licence files, the first one in sorted order is returned.
    """
    return min((name for name in names if name.lower().startswith(_LICENCES)), default="")


def _installed_licences() -> dict[str, str]:
    """Return a dict from the import names of installed packages to the paths of their licence files.

    The paths are relative to `site-packages`. A path is "" if the package has no licence file.
    """
    licences = {}
    for name, distributions in metadata.packages_distributions().items():
        try:
            files = metadata.files(distributions[0]) or []
        except (ValueError, metadata.PackageNotFoundError):  # a broken installation
            continue
        licences[name] = min((str(f) for f in files if f.name.lower().startswith(_LICENCES)), default="")
    return licences
