"""Mining of several repositories for repayments of self-admitted technical debt (SATD).

A commit may repay a technical debt if it deletes a comment such as "TODO: handle errors" and changes the
function to which the comment belongs. After each repository, its results are stored in a partial file, so
that a stopped run can be resumed.
"""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import simllm
from simllm.code.git_repository import MOST_SECONDS, RepositoryLimitError, open_repository
from simllm.code.languages.language_registry import LANGUAGE_OF_SUFFIX
from simllm.code.satd_mining import satd_judge
from simllm.code.satd_mining.debt_repayments import LARGEST_FILE, RULES, Repayment, find_repayments
from simllm.code.satd_mining.find_repositories import NamedRepository
from simllm.code.satd_mining.git_history import file_versions
from simllm.code.satd_mining.repayment_filters import LATER_RULES, fulfilled_later_rules
from simllm.code.satd_mining.repository_splits import SPLITS, split_of
from simllm.code.satd_mining.satd_judge import Answer, Judge
from simllm.code.satd_mining.todo_comments import may_admit_debt
from simllm.errors import InputError
from simllm.io import output_file
from simllm.io.partial_file import PartialFile
from simllm.io.printable_path import printable
from simllm.io.tables import on_one_line
from simllm.llm.endpoint import ChatClient

JUDGED = "the model says that the change repays the debt"


@dataclass
class Funnel:
    """Counts of what remains after each step of a search for commits that may repay technical debt.

    The search finds comments such as "TODO: handle errors" that a commit deletes. The comments are checked by
    several rules, one after the other. A comment that fulfils all rules is written to the output file as one
    item, together with the function to which the comment belongs, before and after the commit.

    Attributes:
        repositories: The number of repositories.
        skipped: The repositories that were left out, and why: one is unreadable, shallow or takes too long.
        remaining: A dict from each rule to the number of comments that fulfil it and all earlier rules.
        splits: A dict from each split (train, validation and test) to the number of items in this split.
        verdicts: A dict from each verdict of the judge to the number of answers; None without a judge.
        failures: Why there is no usable answer, for each item with the verdict "failed".
    """

    repositories: int
    skipped: dict[str, str] = field(default_factory=dict)
    remaining: dict[str, int] = field(default_factory=lambda: dict.fromkeys((*RULES, *LATER_RULES), 0))
    splits: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SPLITS, 0))
    verdicts: dict[str, int] | None = None
    failures: list[str] = field(default_factory=list)

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
        judge: The model that judges the changes; None for no judge. Its answers are kept in the file
            `OUTPUT.answers.jsonl`, and are not asked for again.
        seconds: The time for a repository, which is left out if its time is over.
        allow_shallow: Whether shallow clones are mined, although their history is cut off.

    Attributes:
        lost: Why an answer did not arrive in this run, for each such answer that the next run asks for.

    Raises:
        InputError: The partial file belongs to another command or version of simllm, or to other repositories
            or commits; or the file for the answers holds something else.
    """

    def __init__(
        self,
        output: Path,
        repositories: Sequence[NamedRepository],
        judge: Judge | None = None,
        seconds: float = MOST_SECONDS,
        allow_shallow: bool = False,
    ) -> None:
        self._output, self._repositories, self._judge = output, repositories, judge
        self._seconds, self._allow_shallow = seconds, allow_shallow
        settings: dict[str, Any] = {"command": "mine satd", "version": simllm.__version__, "timeout": seconds}
        settings["allow-shallow"] = allow_shallow
        self._partial = PartialFile(output, settings, resume=True)
        self._done: list[tuple[str, str]] = []  # for each mined repository: its name, and its commit at HEAD
        self._answers: dict[str, Answer] = {}  # the answers of the judge, by the hash of the question
        self._lost_before: set[str] = set()  # the questions whose answers an earlier run lost
        self.answers_file = output.with_name(f"{output.name}.answers.jsonl")
        self.lost: list[str] = []
        if judge:
            self._answers = {each.question: each for each in satd_judge.read_answers(self.answers_file)}
        for record in self._partial.records():
            if "answer" in record:
                self._answers[record["question"]] = Answer(**{"text": record.pop("answer"), **record})
            elif "lost" in record:
                self._lost_before.add(record["question"])
            else:
                self._done.append((record["repository"], record["head"]))
        if self._done != [(each.name, _head(each)) for each in repositories[: len(self._done)]]:
            raise InputError(
                f"{self._partial.path}: begun with other repositories or commits; "
                "name the same folders, or remove the file"
            )

    def mine(self) -> Iterator[None]:
        """Search the git repositories for commits that may repay technical debt.

        The results are stored in the partial file. Repositories that an earlier, stopped run has searched are
        not searched again. A repository that is left out causes a warning.

        Yields:
            None after each repository, so that the caller can show progress.

        Raises:
            InputError: None of the repositories could be read. The partial file is removed.
        """
        for number, repository in enumerate(self._repositories):
            if number >= len(self._done):
                self._partial.append(_mine_repository(repository, self._seconds, self._allow_shallow))
            yield
        records = [record for record in self._partial.records() if "repository" in record]
        for record in records:
            if record["problem"]:
                warnings.warn(on_one_line(f"{record['problem']}; left out"), stacklevel=2)
        if all(record["problem"] for record in records):
            self._partial.remove()
            more = f" and {len(self._repositories) - 1:,} more" if len(self._repositories) > 1 else ""
            first = printable(self._repositories[0].paths.folder)
            raise InputError(f"{first}{more}: no repository could be read")

    def judge(self, client: ChatClient, retry_failed: bool = False) -> Iterator[None]:
        """Ask a language model whether the commits that `mine` found really repay technical debt.

        Each question shows one function before and after a commit. No question is asked about functions that
        `write` leaves out: duplicates, code that is not ASCII, and code of over 1,024 tokens. Each answer
        is written to the disk before it is used. An answer that two runs have lost counts as failed.

        Args:
            client: The client of the model's endpoint.
            retry_failed: Whether to ask again where an earlier run has no usable answer.

        Yields:
            None for each answer, so that the caller can show progress.

        Raises:
            InputError: The endpoint refuses all requests. Earlier answers stay on the disk.
            LostReplyError: The endpoint is lost. Earlier answers stay on the disk.
        """
        assert self._judge
        known = {key for key, answer in self._answers.items() if not (retry_failed and answer.failure)}
        asked = {
            satd_judge.question_hash(self._judge, repayment): repayment
            for _, repayment in self._remaining(Funnel(len(self._repositories)))
        }
        asked = {question: repayment for question, repayment in asked.items() if question not in known}
        lost = []
        with closing(satd_judge.ask(self._judge, client, asked)) as answers:
            for answer in answers:
                if isinstance(answer, satd_judge.Lost):
                    lost.append(answer)
                else:
                    self._keep(answer)
                yield
        for each in lost:  # only now: the endpoint works, so that it is the question that gets no answer
            if each.question in self._lost_before:
                self._keep(Answer(each.question, failure=each.reason))
            else:
                self._partial.append({"question": each.question, "lost": each.reason}, is_synced=True)
                self.lost.append(each.reason)

    def write(self) -> Funnel:
        """Write the changes that repay technical debt to the output file, and remove the partial file.

        A change is a function before and after a commit that deletes a comment such as "TODO: handle errors".
        A change is written only if it fulfils all rules in `RULES` and `LATER_RULES`. If a model judged the
        changes, the model must also have answered "yes". Each change becomes a JSON object on a line of its
        own (an item). All answers of the model go to the file `OUTPUT.answers.jsonl`.

        Returns:
            Counts, such as the number of deleted comments that fulfil each rule, and the number of items in
            each split.
        """
        funnel = Funnel(len(self._repositories))
        judged: dict[str, dict[str, str]] = {}
        if self._judge:
            funnel.remaining[JUDGED] = 0
            funnel.verdicts = dict.fromkeys(satd_judge.VERDICTS, 0)

        def lines() -> Iterator[str]:
            for repository, repayment in self._remaining(funnel):
                split = split_of(repository)
                item = _item(repository, repayment, split)
                if self._judge and funnel.verdicts is not None:
                    answer = self._answers[satd_judge.question_hash(self._judge, repayment)]
                    judged[answer.question] = item
                    funnel.verdicts[answer.verdict] += 1
                    if answer.failure:
                        funnel.failures.append(answer.failure)
                    if answer.verdict != "yes":
                        continue
                    funnel.count({JUDGED: 1})
                funnel.splits[split] += 1
                yield json.dumps(item) + "\n"

        output_file.write(self._output, lines())
        if self._judge and self._answers:
            output_file.write(self.answers_file, satd_judge.answer_lines([*self._answers.values()], judged))
        self._partial.remove()
        return funnel

    def _keep(self, answer: Answer) -> None:
        record = {"question": answer.question, "answer": answer.text, "failure": answer.failure}
        self._partial.append(record, is_synced=True)
        self._answers[answer.question] = answer

    def _remaining(self, funnel: Funnel) -> Iterator[tuple[str, Repayment]]:
        """Yield the stored repayments that are no duplicates, are ASCII and have at most 1,024 tokens.

        A repayment is a function before and after a commit that may have repaid technical debt. The commit
        deletes a comment such as "TODO: handle errors". The method `mine` has stored the repayments in the
        partial file (the intermediate results of the run). The limits of ASCII and 1,024 tokens hold for each
        of the two versions of the function (see `LATER_RULES`).

        Args:
            funnel: An object with counters. Skipped repositories, and the comments that fulfil each rule in
                `RULES` and `LATER_RULES`, are added to it.

        Yields:
            For each repayment: the name of its repository, and the repayment.
        """
        seen: set[bytes] = set()
        for record in self._partial.records():
            if "repository" not in record:
                continue
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
    """Find the commits in a git repository that may repay technical debt.

    Returns:
        A dict with the results, to store in the partial file (the intermediate results of a run). Its keys:

        - `repository`: the name of the repository.
        - `head`: the hash of the repository's commit at HEAD; "" if HEAD cannot be read.
        - `problem`: why the repository is left out; "" if it is mined.
        - `remaining`: for each rule, the number of deleted comments that fulfil this rule and all earlier
          rules.
        - `repayments`: a repayment (a function before and after a commit) for each comment that fulfils all
          rules, as a JSON object.
    """
    record = {"repository": repository.name, "head": _head(repository)}
    ends, problem = time.monotonic() + seconds, ""
    for renames in (True, False):  # a partial clone can be read only without renames
        try:
            remaining, repayments = _mine(repository, renames, ends - time.monotonic(), allow_shallow)
        except InputError as error:
            problem = str(error)
            if time.monotonic() >= ends:
                problem = f"{printable(repository.paths.folder)}: takes more than {seconds:g} seconds"
            if isinstance(error, RepositoryLimitError):
                break
        else:
            return {**record, "problem": "", "remaining": remaining, "repayments": repayments}
    return {**record, "problem": problem, "remaining": [0] * len(RULES), "repayments": []}


def _mine(
    repository: NamedRepository, renames: bool, seconds: float, allow_shallow: bool
) -> tuple[list[int], list[dict[str, str]]]:
    """Search a git repository for commits that may repay technical debt.

    Args:
        repository: The repository.
        renames: Whether to include files that were renamed and changed in the same commit.
        seconds: The time for the search.
        allow_shallow: Whether a shallow clone is searched.

    Returns:
        Two lists. The first has, for each rule, the number of deleted comments that fulfil this rule and all
        earlier rules. The second has the repayments as JSON objects.

    Raises:
        InputError: The repository cannot be read, is a shallow clone, or takes too long.
    """
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
