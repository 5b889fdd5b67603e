"""Mining of several repositories for repayments of self-admitted technical debt (SATD).

A commit may repay a technical debt if it deletes a comment such as "TODO: handle errors" and changes the
function to which the comment belongs. After each repository, its results are stored in a partial file, so
that a stopped run can be resumed.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import simllm
from simllm.code.git_repository import open_repository
from simllm.code.languages.language_registry import LANGUAGE_OF_SUFFIX
from simllm.code.satd_mining import satd_judge
from simllm.code.satd_mining.debt_repayments import LARGEST_FILE, RULES, Repayment, find_repayments
from simllm.code.satd_mining.find_repositories import NamedRepository
from simllm.code.satd_mining.git_history import file_versions
from simllm.code.satd_mining.repayment_filters import LATER_RULES, fulfilled_later_rules
from simllm.code.satd_mining.repository_splits import SPLITS, split_of
from simllm.code.satd_mining.satd_judge import ChatEndpoint
from simllm.code.satd_mining.todo_comments import may_admit_debt
from simllm.errors import InputError
from simllm.io import output_file
from simllm.io.partial_file import PartialFile

JUDGED = "the model says that the change repays the debt"


@dataclass
class Funnel:
    """Counts of what remains after each step of a search for commits that may repay technical debt.

    The search finds comments such as "TODO: handle errors" that a commit deletes. The comments are checked by
    several rules, one after the other. A comment that fulfils all rules is written to the output file as one
    item, together with the function to which the comment belongs, before and after the commit.

    Attributes:
        repositories: The number of repositories.
        unreadable: The number of repositories that could not be read.
        remaining: A dict from each rule to the number of comments that fulfil it and all earlier rules.
        splits: A dict from each split (train, validation and test) to the number of items in this split.
    """

    repositories: int
    unreadable: int = 0
    remaining: dict[str, int] = field(default_factory=lambda: dict.fromkeys((*RULES, *LATER_RULES), 0))
    splits: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SPLITS, 0))

    def count(self, remaining: dict[str, int]) -> None:
        """Add counts of deleted comments, such as those of one repository, to the counts in `self.remaining`.

        Args:
            remaining: A dict from each rule to the number of deleted comments that fulfil this rule and all
                earlier rules.
        """
        for rule, number in remaining.items():
            self.remaining[rule] += number


class SatdMining:
    """A search of git repositories for commits that may repay technical debt (command `simllm mine satd`).

    The debt is self-admitted technical debt (SATD): a comment such as "TODO: handle errors" admits it. The
    commit deletes the comment, and changes the function to which the comment belongs. If an earlier search
    was stopped, it is continued. Call `mine`, then `judge` (only if a model is to judge the changes), and
    then `write`. The caller must hold the lock of the output file (see `simllm.io.output_file.locked`).

    Args:
        output: The output file. Until it is written, intermediate results are in a partial file beside it.
        repositories: The repositories, sorted by name.

    Raises:
        InputError: The partial file belongs to another command or version of simllm, or to other repositories
            or commits.
    """

    def __init__(self, output: Path, repositories: Sequence[NamedRepository]) -> None:
        self._output, self._repositories = output, repositories
        settings = {"command": "mine satd", "version": simllm.__version__}
        self._partial = PartialFile(output, settings, resume=True)
        self._done: list[tuple[str, str]] = []  # for each mined repository: its name, and its commit at HEAD
        self._answers: dict[str, str] = {}  # the answers of the judge, by the hash of the question
        for record in self._partial.records():
            if "answer" in record:
                self._answers[record["question"]] = record["answer"]
            else:
                self._done.append((record["repository"], record["head"]))
        if self._done != [(each.name, _head(each)) for each in repositories[: len(self._done)]]:
            raise InputError(
                f"{self._partial.path}: begun with other repositories or commits; "
                "name the same folders, or remove the file"
            )

    def mine(self) -> Iterator[None]:
        """Search the git repositories for commits that may repay technical debt.

        Such a commit deletes a comment such as "TODO: handle errors", and changes the function to which the
        comment belongs. The results are stored in the partial file (the intermediate results of the run).
        Repositories that an earlier, stopped run has searched are not searched again. A repository that
        cannot be read is skipped with a warning, and counted as unreadable.

        Yields:
            None after each repository, so that the caller can show progress.

        Raises:
            InputError: None of the repositories could be read. The partial file is removed.
        """
        for number, repository in enumerate(self._repositories):
            if number >= len(self._done):
                self._partial.append(_mine_repository(repository))
            yield
        if all(record.get("unreadable") for record in self._partial.records()):
            self._partial.remove()
            more = f" and {len(self._repositories) - 1:,} more" if len(self._repositories) > 1 else ""
            raise InputError(f"{self._repositories[0].paths.folder}{more}: no repository could be read")

    def judge(self, endpoint: ChatEndpoint) -> Iterator[None]:
        """Ask a language model whether the commits that `mine` found really repay technical debt.

        Each question shows one function before and after a commit. The commit deletes a comment such as
        "TODO: handle errors". No question is asked about functions that `write` leaves out: duplicates, code
        that is not ASCII, and code of more than 1,024 tokens. The answers are stored in the partial file (the
        intermediate results of the run). Questions that an earlier, stopped run has asked are not asked
        again.

        Args:
            endpoint: The server with the model.

        Yields:
            None for each question, so that the caller can show progress.

        Raises:
            InputError: The server gives no answer. Earlier answers stay in the partial file.
        """
        for _, repayment in self._remaining(Funnel(len(self._repositories))):
            question = satd_judge.question_hash(endpoint, repayment)
            if question not in self._answers:
                self._answers[question] = satd_judge.ask(endpoint, repayment)
                self._partial.append({"question": question, "answer": self._answers[question]})
            yield

    def write(self, endpoint: ChatEndpoint | None) -> Funnel:
        """Write the changes that repay technical debt to the output file, and remove the partial file.

        A change is a function before and after a commit that deletes a comment such as "TODO: handle errors".
        A change is written only if it fulfils all rules in `RULES` and `LATER_RULES`. If a model judged the
        changes, the model must also have answered "yes". Each change becomes a JSON object on a line of its
        own (an item). The partial file has the intermediate results of the run.

        Args:
            endpoint: The server with the model that judged the changes; None if no model was asked. The
                server is not called: its settings are only needed to find the stored answers.

        Returns:
            Counts, such as the number of deleted comments that fulfil each rule, and the number of items in
            each split.
        """
        funnel = Funnel(len(self._repositories))
        if endpoint:
            funnel.remaining[JUDGED] = 0

        def lines() -> Iterator[str]:
            for repository, repayment in self._remaining(funnel):
                if endpoint:
                    question = satd_judge.question_hash(endpoint, repayment)
                    if not satd_judge.is_yes(self._answers[question]):
                        continue
                    funnel.count({JUDGED: 1})
                split = split_of(repository)
                funnel.splits[split] += 1
                yield json.dumps(_item(repository, repayment, split)) + "\n"

        output_file.write(self._output, lines())
        self._partial.remove()
        return funnel

    def _remaining(self, funnel: Funnel) -> Iterator[tuple[str, Repayment]]:
        """Yield the stored repayments that are no duplicates, are ASCII and have at most 1,024 tokens.

        A repayment is a function before and after a commit that may have repaid technical debt. The commit
        deletes a comment such as "TODO: handle errors". The method `mine` has stored the repayments in the
        partial file (the intermediate results of the run). The limits of ASCII and 1,024 tokens hold for each
        of the two versions of the function (see `LATER_RULES`).

        Args:
            funnel: An object with counters, two of which this method increases. `unreadable` counts the
                repositories that could not be read. `remaining` has a count for each rule in `RULES` and
                `LATER_RULES`: the number of deleted comments that fulfil this rule and all earlier rules.

        Yields:
            For each repayment: the name of its repository, and the repayment.
        """
        seen: set[bytes] = set()
        for record in self._partial.records():
            if "answer" in record:
                continue
            funnel.unreadable += record["unreadable"]
            funnel.count(dict(zip(RULES, record["remaining"], strict=True)))
            for row in record["repayments"]:
                repayment = Repayment(**row)
                fulfilled = fulfilled_later_rules(repayment, seen)
                funnel.count(dict.fromkeys(LATER_RULES[:fulfilled], 1))
                if fulfilled == len(LATER_RULES):
                    yield record["repository"], repayment


def _mine_repository(repository: NamedRepository) -> dict[str, Any]:
    """Find the commits in a git repository that may repay technical debt.

    Such a commit deletes a comment such as "TODO: handle errors", and changes the function to which the
    comment belongs. The function before and after the commit is called a repayment. Each deleted comment is
    checked by the rules in `RULES`, one after the other. A repository that cannot be read causes a warning.

    Returns:
        A dict with the results, to store in the partial file (the intermediate results of a run). Its keys:

        - `repository`: the name of the repository.
        - `head`: the hash of the repository's commit at HEAD; "" if HEAD cannot be read.
        - `unreadable`: whether the repository could not be read.
        - `remaining`: for each rule, the number of deleted comments that fulfil this rule and all earlier
          rules.
        - `repayments`: a repayment for each comment that fulfils all rules, as a JSON object.
    """
    record = {"repository": repository.name, "head": _head(repository)}
    for renames in (True, False):  # a partial clone can be read only without renames
        try:
            remaining, repayments = _mine(repository, renames)
        except InputError as error:
            problem = error
        else:
            return {**record, "unreadable": False, "remaining": remaining, "repayments": repayments}
    warnings.warn(f"{problem}; left out", stacklevel=2)
    return {**record, "unreadable": True, "remaining": [0] * len(RULES), "repayments": []}


def _mine(repository: NamedRepository, renames: bool) -> tuple[list[int], list[dict[str, str]]]:
    """Search a git repository for commits that may repay technical debt.

    Such a commit deletes a comment such as "TODO: handle errors", and changes the function to which the
    comment belongs. The function before and after the commit is called a repayment. Each deleted comment is
    checked by the rules in `RULES`, one after the other. A repayment is kept only if the comment fulfils all
    rules.

    Args:
        repository: The repository.
        renames: Whether to include files that were renamed and changed in the same commit.

    Returns:
        Two lists. The first has, for each rule, the number of deleted comments that fulfil this rule and all
        earlier rules. The second has the repayments as JSON objects.

    Raises:
        InputError: The repository cannot be read.
    """
    remaining, repayments = [0] * len(RULES), []
    with open_repository(repository.paths) as opened:
        for versions in file_versions(opened, LANGUAGE_OF_SUFFIX, may_admit_debt, LARGEST_FILE, renames):
            for fulfilled, repayment in find_repayments(versions):
                for rule in range(fulfilled):
                    remaining[rule] += 1
                if repayment:
                    repayments.append(asdict(repayment))
    return remaining, repayments


def _head(repository: NamedRepository) -> str:
    """Return the hash of the commit that a repository's HEAD points to; "" if it cannot be read."""
    try:
        with open_repository(repository.paths) as opened:
            return opened.head
    except InputError:
        return ""


def _item(repository: str, repayment: Repayment, split: str) -> dict[str, str]:
    """Convert a repayment to a JSON object for the output file.

    A repayment is a function before and after a commit that may have repaid technical debt. The object has
    the fields of `Repayment`, and also `id`, `repository` and `split`. The id is a hash of the other fields
    except the split.

    Args:
        repository: The name of the repository.
        repayment: The repayment.
        split: The split: "train", "validation" or "test".
    """
    item = {"repository": repository, **asdict(repayment)}
    content = json.dumps(item, sort_keys=True).encode()
    return {"id": hashlib.sha256(content).hexdigest()[:16], **item, "split": split}
