"""The results of a run: attempts and their rounds, as they stand in `results.jsonl`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from simllm.errors import InputError
from simllm.io import files
from simllm.io.strict_loading import build
from simllm.metrics.code.tree_distances import PatchSize

RESULTS = "results.jsonl"
OVERFLOW = "context overflow"  # in place of a verdict: the conversation was too long for the model


@dataclass(frozen=True)
class TestResult:
    """The verdict of one test, and the beginning of the program's output."""

    __test__ = False  # for pytest

    verdict: str
    output: str


@dataclass(frozen=True)
class RoundResult:
    """A round: what was asked, replied and judged.

    Attributes:
        round: The number of the round in the strategy, from 1.
        messages: The messages of the user in this round, with role and content.
        reply: The text of the reply; None if the conversation was too long for the model.
        code: The program, or the summary, in the reply; None if there is none.
        verdict: The verdict of a program; None for a summary.
        accepted: Whether the reply was accepted.
        tests: The result of each test.
        compile_log: The messages of the compiler, if it refused the program.
        score: The score of a summary; None if it has none.
        prompt_tokens: Tokens of the request; None if they are not reported.
        completion_tokens: Tokens of the reply; None if they are not reported.
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


@dataclass(frozen=True)
class AttemptResult:
    """An attempt at an item.

    Attributes:
        item: The id of the item.
        attempt: The number of the attempt, from 1.
        rounds: The rounds that were asked.
        skipped: The numbers of the rounds that were left out, because they had nothing new to tell the model.
        open: The reason why the attempt is not finished; None if it is finished.
        patch: The size of the final reply's patch; None for summaries and very large programs. A reply
            without code stands for the empty program.
        fix_patch: The size of the fix; None without a fix.
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
        """Whether the last reply was accepted."""
        return bool(self.rounds) and self.rounds[-1].accepted


def to_json_lines(attempts: Iterable[AttemptResult]) -> str:
    """Return the text of `results.jsonl`: one attempt per line."""
    return "".join(json.dumps(asdict(attempt), ensure_ascii=False) + "\n" for attempt in attempts)


def read_results(run: Path) -> list[AttemptResult]:
    """Read the results of a run.

    Raises:
        InputError: There are none, or a line is wrong.
    """
    if not (run / RESULTS).is_file():
        raise InputError(f"{run}: has no {RESULTS}; expected the folder of a run")
    return [build(AttemptResult, row, where) for where, row in files.objects(run / RESULTS)]
