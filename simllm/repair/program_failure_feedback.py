"""Feedback on a program that failed, for a language model that repairs the program.

The feedback has the messages of the compiler, or the failed tests.
"""

from __future__ import annotations

from simllm.repair.repair_items import RepairItem
from simllm.repair.reply_judge_interface import Judged
from simllm.repair.round_messages import Feedback

MOST_OUTPUT = 2000  # characters of a program's output that are stored and fed back
MOST_LOG = 4000  # characters of the compiler's messages that are stored and fed back


def describe_failure(item: RepairItem, judged: Judged, shows_output: bool) -> Feedback:
    """Return feedback on a tested program, for a language model that repairs the program.

    If the program does not compile, the feedback has the messages of the compiler. Otherwise it has the
    failed tests. If the model's reply has no program, all tests count as failed.

    Args:
        item: The incorrect program that the model corrects, and the tests.
        judged: The verdict on the tested program, and the result of each test. The tested program is the
            incorrect program, or the model's correction.
        shows_output: Whether the feedback contains the program's own output in failed tests.
    """
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
            zip(item.tests, judged.tests or [None] * len(item.tests), strict=True), 1
        )
        if result is None or result.verdict != "AC"
    ]
    return Feedback(judged.verdict, failed)
