"""The search of repositories for repayments, which resumes a stopped one, and its funnel of counts."""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import simllm
from simllm.code.git_folders import RepositoryPaths, find_repository
from simllm.code.git_repository import MOST_SECONDS, RepositoryLimitError, open_repository
from simllm.code.languages.language import LANGUAGE_OF_SUFFIX
from simllm.code.satd_mining import judge as satd_judge
from simllm.code.satd_mining.comments import may_admit_debt
from simllm.code.satd_mining.repayments import (
    LARGEST_FILE,
    LATER_RULES,
    RULES,
    Repayment,
    file_versions,
    find_repayments,
    fulfilled_later_rules,
)
from simllm.errors import InputError
from simllm.io import output_file
from simllm.io.partial_file import PartialFile
from simllm.io.tables import on_one_line, printable
from simllm.llm.model import content_hash
from simllm.llm.session import Session


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


SPLITS = ("train", "validation", "test")


def split_of(repository: str) -> str:
    """Return the split of a repository, by a hash of its name: 85% train, 5% validation, 10% test."""
    # By the name alone: a repository stays in its split whatever other repositories are mined.
    percent = int.from_bytes(hashlib.sha256(repository.encode()).digest()[:8], "big") % 100
    return SPLITS[(percent >= 85) + (percent >= 90)]


JUDGED = "the model says that the change repays the debt"


@dataclass
class Funnel:
    """Counts of what remains after each step of a search.

    Attributes:
        skipped: The repositories that were left out, and why: one is unreadable, shallow or takes too long.
        remaining: For each rule, the number of deleted comments that fulfil it and all earlier rules.
        splits: The number of items in each split.
        verdicts: The number of answers with each verdict of the judge; None without a judge.
        failures: Why there is no usable answer, for each item with the verdict "failed".
    """

    repositories: int
    skipped: dict[str, str] = field(default_factory=dict)
    remaining: dict[str, int] = field(default_factory=lambda: dict.fromkeys((*RULES, *LATER_RULES), 0))
    splits: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SPLITS, 0))
    verdicts: dict[str, int] | None = None
    failures: list[str] = field(default_factory=list)

    def count(self, remaining: dict[str, int]) -> None:
        """Add counts, such as those of one repository, to `remaining`."""
        for rule, number in remaining.items():
            self.remaining[rule] += number


class SatdMining:
    """A search of git repositories for repayments (command `simllm mine satd`), which resumes a stopped one.

    Call `mine`, then `judge` (only with a judge), and then `write`. The caller must hold the lock of the
    output file (see `simllm.io.output_file.locked`).

    Args:
        output: The output file. Until it is written, intermediate results are in a partial file beside it.
        repositories: The repositories, sorted by name.
        seconds: The time for a repository, which is left out if its time is over.
        allow_shallow: Whether shallow clones are mined, although their history is cut off.
    """

    def __init__(
        self,
        output: Path,
        repositories: Sequence[NamedRepository],
        seconds: float = MOST_SECONDS,
        allow_shallow: bool = False,
    ) -> None:
        self._output, self._repositories = output, repositories
        self._seconds, self._allow_shallow = seconds, allow_shallow
        settings: dict[str, Any] = {"command": "mine satd", "version": simllm.__version__, "timeout": seconds}
        settings["allow-shallow"] = allow_shallow
        self._partial = PartialFile(output, settings, resume=True)
        self._done: list[tuple[str, str]] = []  # for each mined repository: its name, and its commit at HEAD
        self._done.extend((record["repository"], record["head"]) for record in self._partial.records())
        # Results of other commits would be mixed with those of this run.
        if self._done != [(each.name, _head(each)) for each in repositories[: len(self._done)]]:
            raise InputError(
                f"{self._partial.path}: begun with other repositories or commits; "
                "name the same folders, or remove the file"
            )

    def mine(self) -> Iterator[None]:
        """Store the repayments of each repository in the partial file; yield after each, to show progress.

        A repository that is left out causes a warning. If none can be read, the partial file is removed.
        """
        for number, repository in enumerate(self._repositories):
            if number >= len(self._done):
                self._partial.append(_mine_repository(repository, self._seconds, self._allow_shallow))
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

    def judge(self, session: Session) -> Iterator[None]:
        """Ask the judge about the repayments that fulfil all rules; yield after each answer."""
        remaining = self._remaining(Funnel(len(self._repositories)))
        with closing(
            session.ask_all([satd_judge.question(repayment) for _, repayment in remaining])
        ) as replies:
            for _ in replies:
                yield

    def write(self, session: Session | None = None) -> Funnel:
        """Write the items that fulfil all rules, and remove the partial file.

        With the session of a judge, only items with the verdict "yes" are written, and the record of answers
        gets verdicts and ids of items.
        """
        funnel = Funnel(len(self._repositories))
        about: dict[str, dict[str, str]] = {}  # by the hash of the question
        if session:
            funnel.remaining[JUDGED] = 0
            funnel.verdicts = dict.fromkeys(satd_judge.VERDICTS, 0)

        def lines() -> Iterator[str]:
            # The funnel is counted while the lines are written, and is complete only after the file.
            for repository, repayment in self._remaining(funnel):
                split = split_of(repository)
                item = _item(repository, repayment, split)
                if session and funnel.verdicts is not None:
                    question = satd_judge.question(repayment)
                    answer = session.ask(question)  # recorded
                    verdict = satd_judge.verdict(answer)
                    shown = {name: item[name] for name in ("repository", "commit", "path", "function")}
                    about[content_hash(session.place_of(question)[0])] = {
                        "item": item["id"],
                        **shown,
                        "verdict": verdict,
                    }
                    funnel.verdicts[verdict] += 1
                    if answer.failure:
                        funnel.failures.append(answer.failure)
                    if verdict != "yes":
                        continue
                    funnel.count({JUDGED: 1})
                funnel.splits[split] += 1
                yield json.dumps(item) + "\n"

        output_file.write(self._output, lines())
        if session and session.record.file:
            rows = session.record.rows()
            output_file.write(
                session.record.file,
                (json.dumps({**row, **about.get(content_hash(row["request"]), {})}) + "\n" for row in rows),
            )
        self._partial.remove()
        return funnel

    def _remaining(self, funnel: Funnel) -> Iterator[tuple[str, Repayment]]:
        """Yield repository and repayment if all rules are fulfilled; count all in `funnel`."""
        seen: set[bytes] = set()
        for record in self._partial.records():
            if record["problem"]:
                funnel.skipped[record["repository"]] = record["problem"]
            funnel.count(dict(zip(RULES, record["remaining"], strict=True)))
            for row in record["repayments"]:
                repayment = Repayment(**row)
                fulfilled = fulfilled_later_rules(repayment, seen)
                funnel.count(dict.fromkeys(LATER_RULES[:fulfilled], 1))
                if fulfilled == len(LATER_RULES):
                    yield record["repository"], repayment


def _mine_repository(repository: NamedRepository, seconds: float, allow_shallow: bool) -> dict[str, Any]:
    """Return the results of one repository for the partial file, as a JSON object.

    `head` is "" if HEAD cannot be read, `problem` is "" if the repository is mined, and `remaining` has for
    each rule the number of deleted comments that fulfil this rule and all earlier rules.
    """
    record = {"repository": repository.name, "head": _head(repository)}
    # Both tries share the time of the repository.
    ends, problem = time.monotonic() + seconds, ""
    for renames in (True, False):  # a partial clone can be read only without renames
        try:
            remaining, repayments = _mine(repository, renames, ends - time.monotonic(), allow_shallow)
        except InputError as error:
            problem = str(error)
            if time.monotonic() >= ends:
                problem = f"{printable(repository.paths.folder)}: takes more than {seconds:g} seconds"
            # A second try would take as long, or find as many files.
            if isinstance(error, RepositoryLimitError):
                break
        else:
            return {**record, "problem": "", "remaining": remaining, "repayments": repayments}
    return {**record, "problem": problem, "remaining": [0] * len(RULES), "repayments": []}


def _mine(
    repository: NamedRepository, renames: bool, seconds: float, allow_shallow: bool
) -> tuple[list[int], list[dict[str, str]]]:
    """Return `remaining` and `repayments` of `_mine_repository`."""
    remaining, repayments = [0] * len(RULES), []
    ends = time.monotonic() + seconds
    opened = open_repository(repository.paths, seconds)
    if opened.is_shallow and not allow_shallow:
        raise InputError(
            f"{opened.folder}: a shallow clone, whose history is cut off; git fetch --unshallow mends it, "
            "and --allow-shallow mines what is there"
        )
    with closing(file_versions(opened, LANGUAGE_OF_SUFFIX, may_admit_debt, LARGEST_FILE, renames)) as found:
        for versions in found:
            for fulfilled, repayment in find_repayments(versions):
                for rule in range(fulfilled):
                    remaining[rule] += 1
                if repayment:
                    repayments.append(asdict(repayment))
            if time.monotonic() > ends:
                raise RepositoryLimitError(f"{opened.folder}: takes too long")
    return remaining, repayments


def _head(repository: NamedRepository) -> str:
    """Return the hash of the commit that a repository's HEAD points to; "" if it cannot be read."""
    try:
        return open_repository(repository.paths).head
    except InputError:
        return ""


def _item(repository: str, repayment: Repayment, split: str) -> dict[str, str]:
    """Convert a repayment to an item; its id is a hash of the other fields except the split."""
    item = {"repository": repository, **asdict(repayment)}
    content = json.dumps(item, sort_keys=True).encode()
    return {"id": hashlib.sha256(content).hexdigest()[:16], **item, "split": split}
