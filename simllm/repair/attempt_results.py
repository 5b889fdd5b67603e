"""The results of attempts, stored in `results.jsonl`."""

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
    """The result of one test of a program: the verdict, and the beginning of the program's output."""

    __test__ = False  # for pytest

    verdict: str
    output: str


@dataclass(frozen=True)
class RoundResult:
    """The result of one round: the messages to the model, the model's reply, and the judgement of the reply.

    Attributes:
        round: The number of the round. A skipped round is counted: if round 2 is skipped, the numbers are 1,
            3 and so on.
        messages: The messages of this round, without those of earlier rounds, each with "role" and "content".
        reply: The text of the reply; None if the conversation was too long for the model.
        code: The program, or the summary, in the reply; None if there is none.
        verdict: The verdict on a program, or "context overflow"; None for a summary.
        tests: The result of each test; empty for a summary, or if the program did not run.
        compile_log: The messages of the compiler if the program does not compile; otherwise "".
        score: The metric's score of the summary; None if it is not finite.
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
    """The result of one attempt.

    Attributes:
        item: The id of the item.
        rounds: The results of the rounds in which the model was asked.
        skipped: The numbers of the rounds that had nothing new to tell the model.
        open: The reason why the attempt is not finished; None if it is finished.
        patch: The size of the patch. A reply without code counts as an empty program. None for a summary, for
            an open attempt and for very large programs.
        fix_patch: The size of the change to the fix; None as for `patch`, or if no fix is known.
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
        """True if the reply in the last round was accepted; False if the model was never asked."""
        return bool(self.rounds) and self.rounds[-1].accepted


AttemptsByItem = Mapping[str, Sequence[AttemptResult]]  # the finished attempts at each item


def finished_by_item(attempts: Sequence[AttemptResult]) -> AttemptsByItem:
    """Group finished attempts by the id of their item; `attempts` must be sorted by item."""
    # groupby joins neighbours only, which is why the attempts must be sorted by item.
    finished = [attempt for attempt in attempts if attempt.open is None]
    return {id_: list(group) for id_, group in groupby(finished, key=lambda attempt: attempt.item)}


def to_json_lines(attempts: Iterable[AttemptResult]) -> str:
    """Format the results of attempts as the text of `results.jsonl`."""
    return "".join(json.dumps(asdict(attempt), ensure_ascii=False) + "\n" for attempt in attempts)


def read_results(run: Path) -> list[AttemptResult]:
    """Read `results.jsonl` in the folder of a run."""
    if not (run / RESULTS).is_file():
        raise InputError(f"{run}: has no {RESULTS}; expected the folder of a run")
    return [build(AttemptResult, row, where) for where, row in read_json_lines.objects(run / RESULTS)]
