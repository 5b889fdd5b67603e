"""The search for comments that do not fit: in folders, and in the changes of a range of commits."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path, PurePath
from typing import TypeVar

from tree_sitter import Node

from simllm.analysis.comment_check.functions import CheckedFunction, FoundFunction, documented_functions
from simllm.analysis.comment_check.rules import BrokenClaim, broken_by_change, broken_now
from simllm.code.git_folders import RepositoryPaths, find_repository
from simllm.code.git_history import FileChange, file_changes, find_commit
from simllm.code.git_repository import Repository, RepositoryLimitError, open_repository
from simllm.code.languages.language import LANGUAGE_OF_SUFFIX, load_language
from simllm.code.normal_form import IMPORTS, code_tokens
from simllm.code.source_files import LARGEST, is_generated, is_skipped_folder, source_files
from simllm.errors import InputError
from simllm.io.tables import format_count, printable


@dataclass(frozen=True)
class Case:
    """A documented function with its broken claims, which may be none if its code changed.

    Attributes:
        path: The file: relative to the working folder if it is below, else absolute; in a bare repository,
            the path in the commit.
        old: The function before its code changed and its comment did not; None if it was not compared.
    """

    path: str
    function: CheckedFunction
    old: CheckedFunction | None
    broken: tuple[BrokenClaim, ...]


@dataclass
class Search:
    """A search with its counts: files, documented functions in them, and why files were left out."""

    files: int = 0
    functions: int = 0
    skipped: Counter[str] = field(default_factory=Counter)

    def in_folders(self, paths: Sequence[Path]) -> Iterator[Case]:
        """Check each documented function in files and folders as it is; files that are named twice, once."""
        seen = set[Path]()
        for path in paths:
            if not path.exists():
                raise InputError(f"{path}: no such file or folder")
            if path.is_file() and path.suffix not in LANGUAGE_OF_SUFFIX:
                raise InputError(f"{path}: expected source code: {', '.join(LANGUAGE_OF_SUFFIX)}")
            for file in [path] if path.is_file() else source_files(path):
                if (real := file.resolve()) in seen:
                    continue
                seen.add(real)
                content = self._read(file)
                if content is not None and (version := self._version(content, file)):
                    self.files += 1
                    for function in version.functions:
                        self.functions += 1
                        checked = function.read()
                        yield Case(_shown(file), checked, None, tuple(broken_now(checked)))

    def in_range(self, paths: Sequence[Path], start: str, end: str | None) -> Iterator[Case]:
        """Check the functions that changed after revision `start`, up to `end` or to the files on the disk.

        Functions whose comment is new are checked as they are; these are all before the first commit.
        """
        place = _repository(paths)
        repository, is_bare = open_repository(place), place.folder.resolve() == place.own.resolve()
        if (start, end) == ("HEAD", None) and not repository.has_commits:
            yield from self.in_folders(paths)
            return
        first = find_commit(repository, start)
        last = find_commit(repository, end) if end is not None else repository.head
        on_disk = end is None and not is_bare
        chosen = _Chosen(place.folder, paths)
        changed = dict[str, _ChangedFile]()
        before = {file.path for file in repository.files(first)}
        for change, old, new in self._changes(repository, first, last, chosen):
            # A renamed file keeps what was found in it; in a file that the range added, all comments are new.
            here = changed.pop(change.old_path, None) or _ChangedFile(_is_first=change.old_path in before)
            changed[change.path] = here
            here.compare(self._version(old, PurePath(change.path)), self._version(new, PurePath(change.path)))
        now = [file for file in repository.files(last) if chosen(file.path)]
        edited = dict[str, bytes | None]()
        for file in now:
            if on_disk and not self._is_same(path := place.folder / file.path, file.blob):
                edited[file.path] = self._read(path) if path.is_file() and not path.is_symlink() else None
        wanted = [
            file for file in now if file.path in changed or file.path in edited or file.path not in before
        ]
        contents = repository.contents((file.blob for file in wanted), LARGEST)
        for file, content in zip(wanted, contents, strict=True):
            here = changed.setdefault(file.path, _ChangedFile(_is_first=file.path in before))
            current = edited.get(file.path, content)
            if file.path in edited and current is not None:
                versions = (self._version(each, PurePath(file.path)) for each in (content, current))
                here.compare(*versions)
            # A deleted file has no comments to check.
            if current is not None or file.path not in edited:
                shown = file.path if is_bare else _shown(place.folder / file.path)
                yield from self._changed_file(shown, here, current)
        if on_disk:
            yield from self._untracked(place.folder, paths, chosen, {file.path for file in now})

    def _untracked(
        self, root: Path, paths: Sequence[Path], chosen: _Chosen, known: set[str]
    ) -> Iterator[Case]:
        """Check the files that were named themselves, but are in no commit yet."""
        for path in paths:
            name = path.resolve().relative_to(root.resolve()).as_posix()
            is_new = path.is_file() and name not in known and chosen(name)
            known.add(name)
            if is_new and (content := self._read(path)) is not None:
                yield from self._changed_file(_shown(path), _ChangedFile(), content)

    def _changes(
        self, repository: Repository, first: str, last: str, chosen: _Chosen
    ) -> Iterator[tuple[FileChange, bytes | None, bytes | None]]:
        """Yield the changed files of a range, oldest first, with their contents before and after."""
        # A merge brings changes of other commits, which are in the range themselves, or before it.
        commits = ("--no-merges", "--topo-order", last, f"^{first}")
        try:
            changes = list(file_changes(repository, LANGUAGE_OF_SUFFIX, True, commits))
        except RepositoryLimitError:
            raise
        except InputError:  # a partial clone, in which git cannot look for renames
            changes = list(file_changes(repository, LANGUAGE_OF_SUFFIX, False, commits))
        changes = [change for change in changes if chosen(change.path)]
        blobs = chain.from_iterable((change.old, change.new) for change in changes)
        contents = repository.contents(blobs, LARGEST)
        yield from zip(changes, contents, contents, strict=True)

    def _changed_file(self, path: str, changed: _ChangedFile, content: bytes | None) -> Iterator[Case]:
        if not (version := self._version(content, PurePath(path))):
            return
        self.files += 1
        pairs = _pairs(list(changed.olds.values()), version.functions)
        olds = {_key(new): old for old, new in pairs}
        for new in version.functions:
            old, known = olds.get(_key(new)), changed.comments
            is_new = known is not None and _key(new)[1] not in known
            if not (old or is_new):
                continue
            self.functions += 1
            function = new.read()
            broken = broken_by_change(old, function, version.has_word) if old else []
            if is_new:
                found = {(each.rule, each.claim.value) for each in broken}
                now = self._broken_now(function, changed.content)
                broken += [each for each in now if (each.rule, each.claim.value) not in found]
            yield Case(path, function, old, tuple(broken))

    def _broken_now(self, function: CheckedFunction, before: bytes | None) -> list[BrokenClaim]:
        """Return the broken claims of a new comment, without those of the function's comment before."""
        broken = broken_now(function)
        if broken and before is not None:
            same = [old for old in _parse(before, function.language).functions if old.name == function.name]
            old = {(each.rule, each.claim.value) for one in same for each in broken_now(one.read())}
            broken = [each for each in broken if (each.rule, each.claim.value) not in old]
        return broken

    def _read(self, file: Path) -> bytes | None:
        try:
            with file.open("rb") as opened:
                # One byte more than allowed shows that a file is too large, without reading all of it.
                return opened.read(LARGEST + 1)
        except OSError as error:
            self.skipped[f"cannot be read ({error.strerror})"] += 1
            return None

    def _is_same(self, file: Path, blob: str) -> bool:
        """Return whether a file on the disk has the content of a git object."""
        if file.is_symlink() or not file.is_file() or (data := self._read(file)) is None:
            return False
        digest = hashlib.sha1 if len(blob) == 40 else hashlib.sha256
        return digest(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest() == blob

    def _version(self, content: bytes | None, path: PurePath) -> _Version | None:
        """Parse a version of a file; None if it is left out."""
        if content is None:
            self.skipped["missing from the repository, or larger than 1 MiB"] += 1
        elif len(content) > LARGEST:
            self.skipped["larger than 1 MiB"] += 1
        elif b"\0" in content[:8000]:
            self.skipped["binary"] += 1
        elif is_generated(content):
            self.skipped["generated"] += 1
        else:
            try:
                return _parse(content, LANGUAGE_OF_SUFFIX[path.suffix])
            except TimeoutError:
                self.skipped["too slow to parse"] += 1
        return None

    def tell_skipped(self) -> list[str]:
        """Return a line for each reason why versions of files were left out."""
        return [
            f"{format_count(count, 'version')} of files left out: {reason}"
            for reason, count in self.skipped.items()
        ]


class _Chosen:
    """The source files of a repository below the paths that the user named."""

    def __init__(self, root: Path, paths: Sequence[Path]) -> None:
        inside = [PurePath(os.path.relpath(path.resolve(), root.resolve())).as_posix() for path in paths]
        self._prefixes = tuple("" if path == "." else path for path in inside)

    def __call__(self, path: str) -> bool:
        pure = PurePath(path)
        return (
            pure.suffix in LANGUAGE_OF_SUFFIX
            and not any(map(is_skipped_folder, pure.parts[:-1]))
            and any(
                not prefix or path == prefix or path.startswith(f"{prefix}/") for prefix in self._prefixes
            )
        )


@dataclass(frozen=True)
class _Version:
    """A parsed version of a source file."""

    content: bytes
    language: str
    functions: list[FoundFunction]

    @cached_property
    def _words(self) -> set[bytes]:
        root = load_language(self.language).parse(self.content)
        imports = [node for node in _two_levels(root) if node.type in IMPORTS]
        words = {word for node in imports for word in re.findall(rb"\w+", node.text or b"")}
        return words.union(token for token, *_ in code_tokens(root, self.content, self.language))

    def has_word(self, word: str) -> bool:
        """Return whether a word is a token of the file's code, or occurs in an import."""
        return word.encode() in self._words


def _two_levels(root: Node) -> Iterator[Node]:
    """Yield the children of a root, and theirs: PHP's imports may stand inside a namespace."""
    for child in root.children:
        yield child
        yield from child.children


@lru_cache(64)  # the version after a commit is that before the next
def _parse(content: bytes, language: str) -> _Version:
    return _Version(content, language, documented_functions(content, language))


_Key = tuple[str, tuple[str, ...]]


def _key(function: FoundFunction | CheckedFunction) -> _Key:
    """Return the name of a function, and the words of its comment."""
    return function.name, tuple(function.comment.replace("*", " ").replace("#", " ").split())


@dataclass
class _ChangedFile:
    """The changes of a file over a range of commits.

    Attributes:
        olds: Functions before their code changed for the first time and their comment did not.
        comments: The words of the comments before the range; None if that version cannot be read.
        content: The file before the range; None without one, or if it cannot be read.
    """

    olds: dict[_Key, CheckedFunction] = field(default_factory=dict)
    comments: set[tuple[str, ...]] | None = field(default_factory=set)
    content: bytes | None = None
    _is_first: bool = True  # whether the next change is the first of the file in the range

    def compare(self, old: _Version | None, new: _Version | None) -> None:
        """Add the changes of a commit."""
        if self._is_first:
            self.comments = {_key(function)[1] for function in old.functions} if old else None
            self.content = old.content if old else None
            self._is_first = False
        if old and new:
            for before, after in _pairs(old.functions, new.functions):
                if before.code != after.code and (key := _key(before)) not in self.olds:
                    self.olds[key] = before.read()


_Old = TypeVar("_Old", FoundFunction, CheckedFunction)


def _pairs(olds: Sequence[_Old], news: Sequence[FoundFunction]) -> Iterator[tuple[_Old, FoundFunction]]:
    """Pair functions of two versions with the same comment, by their names if several have it."""
    identify: tuple[Callable[[FoundFunction | CheckedFunction], object], ...] = (
        _key,
        lambda function: _key(function)[1],
    )
    for key in identify:
        counts = [Counter(map(key, functions)) for functions in (olds, news)]
        by_key = {key(function): function for function in olds if counts[0][key(function)] == 1}
        for new in news:
            if counts[1][key(new)] == 1 and (old := by_key.get(key(new))):
                yield old, new
        # The others may have been renamed.
        paired = {key(new) for new in news if counts[1][key(new)] == 1} & by_key.keys()
        olds = [function for function in olds if key(function) not in paired]
        news = [function for function in news if key(function) not in paired]


def _repository(paths: Sequence[Path]) -> RepositoryPaths:
    """Find the git repository around all the paths."""
    found = dict[Path, RepositoryPaths]()
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder")
        here = path.resolve()
        for folder in (here, *here.parents):
            # The user's own repository may be a linked work tree, with its data elsewhere.
            if folder.is_dir() and (repository := find_repository(folder, Path("/"))):
                found[repository.folder] = repository
                break
        else:
            raise InputError(f"{path}: a range of commits needs a git repository")
    if len(found) > 1:
        raise InputError(f"{' and '.join(map(printable, found))}: expected paths in one git repository")
    return next(iter(found.values()))


def _shown(file: Path) -> str:
    """Return the path relative to the working folder if it is below, else the absolute path."""
    absolute = Path(os.path.abspath(file))  # noqa: PTH100 (a link to a folder stays)
    here = Path.cwd()
    return printable(absolute.relative_to(here) if absolute.is_relative_to(here) else absolute)
