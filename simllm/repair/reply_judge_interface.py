"""The interface of all judges of a model's replies, and the judgement that a judge returns.

The judge of programs runs tests. The judge of summaries of code uses a metric.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from simllm.repair.attempt_results import TestResult
from simllm.repair.repair_items import RepairItem
from simllm.repair.round_messages import Feedback


@dataclass(frozen=True)
class Judged:
    """The judgement of a program or summary.

    Attributes:
        code: The program or summary that was judged; None if there is none, such as in a reply without code.
        accepted: Whether the program passes all tests, or the summary has a high enough score.
        verdict: The verdict on a program, such as "WA" (wrong answer); None for a summary.
        tests: The result of each test of the program. Empty for a summary, or if the program did not run.
        compile_log: The messages of the compiler if the program does not compile; otherwise "".
        score: The metric's score of the summary. None for a program, or if the score is not finite.
        is_ambiguous: Whether several blocks of code in the reply fitted equally well.
    """

    code: str | None
    accepted: bool
    verdict: str | None = None
    tests: tuple[TestResult, ...] = ()
    compile_log: str = ""
    score: float | None = None
    is_ambiguous: bool = False


class ReplyJudge(Protocol):
    """Interface of a judge, which decides whether a model's reply is accepted.

    The model gets an item, and replies with a corrected program or a summary. An item is an incorrect program
    with tests, or code to summarize.
    """

    def judge_reply(self, item: RepairItem, reply: str) -> Judged:
        """Judge a model's reply, which should contain a corrected program or a summary of code.

        A program is accepted if it passes all tests. A summary is accepted if its score is high enough.

        Args:
            item: The incorrect program that the model repairs, or the code that it summarizes.
            reply: The text of the reply.

        Returns:
            The judgement: whether the program or summary is accepted, and test results or a score.
        """

    def judge_code(self, item: RepairItem) -> Judged:
        """Judge the incorrect program before its repair, so that a prompt can show which tests it fails."""

    def feedback(self, item: RepairItem, judged: Judged) -> Feedback:
        """Return feedback for the model: what is wrong with its program or summary.

        Args:
            item: The incorrect program that the model repairs, or the code that it summarizes.
            judged: The judgement of the program or summary.
        """
