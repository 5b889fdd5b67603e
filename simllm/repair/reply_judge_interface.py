"""The interface of all judges, and the judgement that a judge returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from simllm.repair.attempt_results import TestResult
from simllm.repair.repair_items import RepairItem
from simllm.repair.round_messages import Feedback


@dataclass(frozen=True)
class Judged:
    """The judgement of a program or summary. The attributes are those of `RoundResult`."""

    code: str | None
    accepted: bool
    verdict: str | None = None
    tests: tuple[TestResult, ...] = ()
    compile_log: str = ""
    score: float | None = None
    is_ambiguous: bool = False


class ReplyJudge(Protocol):
    """Interface of a judge, which decides whether a reply is accepted."""

    def judge_reply(self, item: RepairItem, reply: str) -> Judged:
        """Judge a reply, which should contain a corrected program or a summary."""

    def judge_code(self, item: RepairItem) -> Judged:
        """Judge the incorrect program before its repair, so that a prompt can show which tests it fails."""

    def feedback(self, item: RepairItem, judged: Judged) -> Feedback:
        """Return feedback for the model: what is wrong with its program or summary."""
