"""Feedback on a program that failed: the messages of the compiler, or the failed tests."""

from __future__ import annotations

from simllm.repair.repair_items import RepairItem
from simllm.repair.reply_judge_interface import Judged
from simllm.repair.round_messages import Feedback

MOST_OUTPUT = 2000  # characters of a program's output that are stored and fed back
MOST_LOG = 4000  # characters of the compiler's messages that are stored and fed back


def describe_failure(item: RepairItem, judged: Judged, shows_output: bool) -> Feedback:
    """Describe why a program was not accepted; `shows_output` adds its own output in failed tests."""
    if judged.verdict == "CE":
        return Feedback(judged.verdict, compile_log=judged.compile_log or "(no message)")
    failed = [
        {
            "number": number,
            "input": test.input,
            "output": test.output,
            "actual": result.output if result and shows_output else None,
        }
        for number, (test, result) in enumerate(
            # Without a program nothing was run: there are no results, and all tests count as failed.
            zip(item.tests, judged.tests or [None] * len(item.tests), strict=True),
            1,
        )
        if result is None or result.verdict != "AC"
    ]
    return Feedback(judged.verdict, failed)
