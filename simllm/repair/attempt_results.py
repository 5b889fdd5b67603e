"""The results of a model's attempts to repair programs or to summarize code, stored in `results.jsonl`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path

from simllm.errors import InputError
from simllm.io import read_json_lines
from simllm.io.strict_dataclass_loading import build
from simllm.metrics.code.relative_patch_size import PatchSize

RESULTS = "results.jsonl"
OVERFLOW = "context overflow"  # in place of a verdict: the conversation was too long for the model


@dataclass(frozen=True)
class TestResult:
    """The result of one test of a program.

    Attributes:
        verdict: The verdict, such as "AC" (accepted) or "WA" (wrong answer).
        output: The beginning of the program's output.
    """

    __test__ = False  # for pytest

    verdict: str
    output: str


@dataclass(frozen=True)
class RoundResult:
    """The result of one round: the messages to the model, the model's reply, and the judgement of the reply.

    A round is one request in a model's attempt to repair a program or to summarize code.

    Attributes:
        round: The number of the round in the attempt, from 1. A round that has nothing new to tell the model
            is skipped, but it is counted: if round 2 is skipped, the numbers are 1, 3, and so on.
        messages: The messages that were sent in this round, each with the keys "role" and "content". Messages
            of earlier rounds are not repeated.
        reply: The text of the reply; None if the conversation was too long for the model.
        code: The program, or the summary, in the reply; None if there is none.
        verdict: The verdict on a program, such as "WA" (wrong answer); None for a summary. It is "context
            overflow" if the conversation was too long for the model.
        accepted: Whether the program passes all tests, or the summary has a high enough score.
        tests: The result of each test of the program. Empty for a summary, or if the program did not run.
        compile_log: The messages of the compiler if the program does not compile; otherwise "".
        score: The metric's score of the summary. None for a program, or if the score is not finite.
        prompt_tokens: Number of tokens of the request; None if the endpoint does not report it.
        completion_tokens: Number of tokens of the reply; None if the endpoint does not report it.
        is_ambiguous: Whether several blocks of code in the reply fitted equally well.
    """

    round: int
    messages: tuple[dict[str, str], ...]
    reply: str | None
    code: str | None
    verdict: str | None
    accepted: bool
    tests: tuple[TestResult, ...] = ()
    compile_log: str = ""
    score: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    is_ambiguous: bool = False


@dataclass(frozen=True)
class AttemptResult:
    """The result of one attempt of a model to repair a program or to summarize code, in one or more rounds.

    A round is one request to the model and the model's reply.

    Attributes:
        item: The id of the item: the program to repair, or the code to summarize.
        attempt: The number of the attempt, from 1.
        rounds: The results of the rounds in which the model was asked.
        skipped: The numbers of the rounds that were skipped, because they had nothing new to tell the model.
        open: The reason why the attempt is not finished; None if it is finished.
        patch: The size of the change from the item's program to the program in the final reply. A reply
            without code counts as an empty program. None for a summary, for an unfinished attempt and for
            very large programs.
        fix_patch: The size of the change from the item's program to the item's fix (the known correct
            program). None for a summary, for an unfinished attempt, for very large programs, and if no fix
            is known.
    """

    item: str
    attempt: int
    rounds: tuple[RoundResult, ...]
    skipped: tuple[int, ...] = ()
    open: str | None = None
    patch: PatchSize | None = None
    fix_patch: PatchSize | None = None

    @property
    def accepted(self) -> bool:
        """True if the attempt succeeded: if the reply in its last round was accepted.

        If the model repairs a program, the reply is accepted if its program passes all tests. If the model
        summarizes code, the reply is accepted if its summary scores high enough. The value is False if the
        model was never asked.
        """
        return bool(self.rounds) and self.rounds[-1].accepted


AttemptsByItem = Mapping[str, Sequence[AttemptResult]]  # the finished attempts at each item


def finished_by_item(attempts: Sequence[AttemptResult]) -> AttemptsByItem:
    """Group a model's finished attempts by item: the program to repair, or the code to summarize.

    Args:
        attempts: The attempts, sorted by item; unfinished attempts are ignored.

    Returns:
        A dict from the id of each item to its finished attempts. Items without a finished attempt are left
        out.
    """
    finished = [attempt for attempt in attempts if attempt.open is None]
    return {id_: list(group) for id_, group in groupby(finished, key=lambda attempt: attempt.item)}


def to_json_lines(attempts: Iterable[AttemptResult]) -> str:
    """Format the results of attempts as the text of `results.jsonl`: a JSON object per line."""
    return "".join(json.dumps(asdict(attempt), ensure_ascii=False) + "\n" for attempt in attempts)


def read_results(run: Path) -> list[AttemptResult]:
    """Read the results of a model's attempts from the file `results.jsonl` in the folder of a run.

    Raises:
        InputError: The folder has no file `results.jsonl`, or a line of the file is wrong.
    """
    if not (run / RESULTS).is_file():
        raise InputError(f"{run}: has no {RESULTS}; expected the folder of a run")
    return [build(AttemptResult, row, where) for where, row in read_json_lines.objects(run / RESULTS)]
