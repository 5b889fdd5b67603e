"""The sources of repayments: a search of repositories, which resumes a stopped one, and items of others."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import simllm
from simllm.code.git_folders import RepositoryPaths, find_repository
from simllm.code.git_history import FileVersions, file_versions
from simllm.code.git_repository import MOST_SECONDS, RepositoryLimitError, open_repository
from simllm.code.languages.language import LANGUAGE_OF_SUFFIX, find_language
from simllm.code.satd_mining.comments import WORDS, DebtWords
from simllm.code.satd_mining.repayments import (
    LARGEST_FILE,
    RULES,
    Repayment,
    find_repayments,
    with_dates,
)
from simllm.code.satd_mining.selection import Funnel
from simllm.errors import InputError
from simllm.io import reading
from simllm.io.packages import require_linux
from simllm.io.partial_file import PartialFile
from simllm.io.tables import on_one_line, printable


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
    require_linux("reading git repositories")
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


SPLITS = ("train", "validation", "test")


def split_of(repository: str) -> str:
    """Return the split of a repository, by a hash of its name: 85% train, 5% validation, 10% test."""
    # By the name alone: a repository stays in its split whatever other repositories are mined.
    percent = int.from_bytes(hashlib.sha256(repository.encode()).digest()[:8], "big") % 100
    return SPLITS[(percent >= 85) + (percent >= 90)]


_HASHED = ("commit", "path", "function", "language", "comment", "source", "reference")


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search.

    Attributes:
        words: The words that admit debt.
        languages: The languages of the files; empty for all.
        timeout: The seconds for a repository, which is left out if its time is over.
        allow_shallow: Whether shallow clones are mined, although their history is cut off.
    """

    words: tuple[str, ...] = WORDS
    languages: tuple[str, ...] = ()
    timeout: float = MOST_SECONDS
    allow_shallow: bool = False


class SatdMining:
    """A search of git repositories for repayments, which resumes a stopped one, as a source of repayments.

    Call `mine` first, and `remove` after the output is written. The caller must hold the lock of the output
    file (see `simllm.io.output_file.locked`).

    Args:
        output: The output file. Until it is written, intermediate results are in a partial file beside it.
        repositories: The repositories, sorted by name.
    """

    def __init__(self, output: Path, repositories: Sequence[NamedRepository], options: SearchOptions) -> None:
        self._repositories, self._options = repositories, options
        settings = {"command": "mine satd", "version": simllm.__version__, **asdict(options)}
        # As JSON, in which it is compared with the file.
        settings = json.loads(json.dumps(settings))
        self._partial = PartialFile(output, settings, resume=True)
        self._done: list[tuple[str, str]] = []  # for each mined repository: its name, and its commit at HEAD
        self._done.extend((record["repository"], record["head"]) for record in self._partial.records())
        # Results of other commits would be mixed with those of this run.
        if self._done != [(each.name, _head(each)) for each in repositories[: len(self._done)]]:
            raise InputError(
                f"{self._partial.path}: begun with other repositories or commits; "
                "name the same folders, or remove the file"
            )

    def __len__(self) -> int:
        """Return the number of repositories."""
        return len(self._repositories)

    def mine(self) -> Iterator[None]:
        """Store the repayments of each repository in the partial file; yield after each, to show progress.

        A repository that is left out causes a warning. If none can be read, the partial file is removed.
        """
        for number, repository in enumerate(self._repositories):
            if number >= len(self._done):
                self._partial.append(_mine_repository(repository, self._options))
            yield
        records = list(self._partial.records())
        for record in records:
            if record["problem"]:
                warnings.warn(on_one_line(f"{record['problem']}; left out"), stacklevel=2)
        # Nothing is worth resuming; the next run must try again.
        if all(record["problem"] for record in records):
            self._partial.remove()
            more = f" and {len(self._repositories) - 1:,} more" if len(self._repositories) > 1 else ""
            first = printable(self._repositories[0].paths.folder)
            raise InputError(f"{first}{more}: no repository could be read")

    def remove(self) -> None:
        """Remove the partial file, after the output has been written."""
        self._partial.remove()

    def funnel(self) -> Funnel:
        """Return a new funnel, without any counts of rules."""
        return Funnel(len(self._repositories), splits=dict.fromkeys(SPLITS, 0))

    def repayments(self, funnel: Funnel) -> Iterator[tuple[dict[str, Any], Repayment]]:
        """Yield each change that fulfils `RULES`, as an item and as a repayment; count all in `funnel`."""
        for record in self._partial.records():
            if record["problem"]:
                funnel.skipped[record["repository"]] = record["problem"]
            for language, counts in record["remaining"].items():
                funnel.count(language, dict(zip(RULES, counts, strict=True)))
            for row in record["repayments"]:
                repayment = Repayment(**row)
                yield _item(record["repository"], repayment), repayment


def _mine_repository(repository: NamedRepository, options: SearchOptions) -> dict[str, Any]:
    """Return the results of one repository for the partial file, as a JSON object.

    `head` is "" if HEAD cannot be read, `problem` is "" if the repository is mined, and `remaining` has by
    language, for each rule, the number of deleted comments that fulfil this rule and all earlier rules.
    """
    record = {"repository": repository.name, "head": _head(repository)}
    # Both tries share the time of the repository.
    ends, problem = time.monotonic() + options.timeout, ""
    for renames in (True, False):  # a partial clone can be read only without renames
        try:
            remaining, repayments = _mine(repository, renames, ends - time.monotonic(), options)
        except InputError as error:
            problem = str(error)
            if time.monotonic() >= ends:
                problem = f"{printable(repository.paths.folder)}: takes more than {options.timeout:g} seconds"
            # A second try would take as long, or find as many files.
            if isinstance(error, RepositoryLimitError):
                break
        else:
            return {**record, "problem": "", "remaining": remaining, "repayments": repayments}
    return {**record, "problem": problem, "remaining": {}, "repayments": []}


def _mine(
    repository: NamedRepository, renames: bool, seconds: float, options: SearchOptions
) -> tuple[dict[str, list[int]], list[dict[str, Any]]]:
    """Return `remaining` and `repayments` of `_mine_repository`."""
    remaining, repayments = dict[str, list[int]](), list[dict[str, Any]]()
    ends = time.monotonic() + seconds
    opened = open_repository(repository.paths, seconds)
    if opened.is_shallow and not options.allow_shallow:
        raise InputError(
            f"{opened.folder}: a shallow clone, whose history is cut off; git fetch --unshallow mends it, "
            "and --allow-shallow mines what is there"
        )
    words = DebtWords(options.words)
    found = file_versions(opened, _suffixes(options.languages), words.may_be_in, LARGEST_FILE, renames)
    with closing(found):
        for versions in found:
            for fulfilled, repayment in find_repayments(versions, words):
                counts = remaining.setdefault(versions.language, [0] * len(RULES))
                for rule in range(fulfilled):
                    counts[rule] += 1
                if repayment:
                    repayments.append(asdict(with_dates(repayment, opened, versions.old_path)))
            if time.monotonic() > ends:
                raise RepositoryLimitError(f"{opened.folder}: takes too long")
    return remaining, repayments


def _suffixes(languages: Sequence[str]) -> list[str]:
    return [suffix for suffix, name in LANGUAGE_OF_SUFFIX.items() if not languages or name in languages]


def _head(repository: NamedRepository) -> str:
    """Return the hash of the commit that a repository's HEAD points to; "" if it cannot be read."""
    try:
        return open_repository(repository.paths).head
    except InputError:
        return ""


def _item(repository: str, repayment: Repayment) -> dict[str, Any]:
    """Convert a repayment to an item; its id is a hash of what does not depend on the way of its dating."""
    row = asdict(repayment)
    content = json.dumps({"repository": repository, **{name: row[name] for name in _HASHED}}, sort_keys=True)
    id_ = hashlib.sha256(content.encode()).hexdigest()[:16]
    return {"id": id_, "repository": repository, **row, "split": split_of(repository)}


_MARKS = ("#", "//", "/*", "*", "=begin")
_HASH_MARKED = ("python", "ruby")


class ExistingItems:
    """Items in a file of JSON lines, as a source of repayments.

    A line has `source` and `reference`, the function before and after a change, and `language`. If the
    comment that admits the debt is not in `source`, as in some data sets, it stands under `comment`. Other
    fields stay as they are; a missing `id` is a hash of the line.

    Args:
        languages: The languages that are kept; empty for all.
    """

    def __init__(self, file: Path, words: DebtWords, languages: Collection[str] = ()) -> None:
        self._file, self._words, self._languages = file, words, languages
        self._rows = list(self._read())
        if not self._rows:
            raise InputError(f"{file}: empty; expected items, a JSON object on each line")

    def funnel(self) -> Funnel:
        """Return a new funnel, without any counts of rules."""
        return Funnel(items=len(self._rows))

    def repayments(self, funnel: Funnel) -> Iterator[tuple[dict[str, Any], Repayment]]:
        """Yield each item that fulfils `RULES`, with its repayment; count all in `funnel`."""
        for row, versions in self._rows:
            found = list(find_repayments(versions, self._words))
            # An item counts once, by the comment that fulfils the most rules.
            fulfilled, repayment = max(found, key=lambda one: one[0], default=(0, None))
            funnel.count(versions.language, dict.fromkeys(RULES[:fulfilled], 1))
            if repayment:
                yield {**row, "comment": row.get("comment", repayment.comment)}, repayment

    def _read(self) -> Iterator[tuple[dict[str, Any], FileVersions]]:
        ids = dict[str, str]()
        for where, row in reading.objects(self._file):
            texts = [reading.text_under(row, name, where) for name in ("source", "reference", "language")]
            source, reference, language = texts
            try:
                find_language(language)
            except InputError as error:
                raise InputError(f"{where}: {error}") from None
            if self._languages and language not in self._languages:
                continue
            if "comment" in row:
                source = _with_comment(source, reading.text_under(row, "comment", where), language)
            content = json.dumps(row, sort_keys=True).encode()
            item = {"id": row.get("id", hashlib.sha256(content).hexdigest()[:16]), **row}
            if (known := ids.setdefault(str(item["id"]), where)) != where:
                raise InputError(f"{where}: has the id {item['id']!r} of {known}")
            # A function without its class and file, so that the name of the path does not matter.
            versions = FileVersions("", "", source.encode(), reference.encode(), language)
            yield item, versions


def _with_comment(source: str, comment: str, language: str) -> str:
    """Put a comment above a function in which it does not stand; without its marks, it gets some."""
    if _words(comment) in _words(source):
        return source
    mark = "#" if language in _HASH_MARKED else "//"
    lines = comment.strip().splitlines()
    if not comment.strip().startswith(_MARKS):
        lines = [f"{mark} {line}" for line in lines]
    return "\n".join([*lines, source])


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text))
