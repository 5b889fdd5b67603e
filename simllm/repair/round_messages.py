"""The messages that ask a model to repair a program, made for each round (request) of a conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from simllm.errors import InputError
from simllm.execution.program_verdicts import VERDICTS
from simllm.llm.endpoint import Message
from simllm.repair.prompt_templates import VARIABLES, Prompts
from simllm.repair.repair_items import RepairItem
from simllm.repair.strategy_loading import SCORE, Round

# The attributes of an item that templates can use. The fix, the reference and passed tests stay secret.
_SHOWN = ("description", "language", "code", "files", "time", "memory")


@dataclass(frozen=True)
class Feedback:
    """Feedback for a model on its program or its summary of code.

    Attributes that do not apply are None, except `failed`, which is empty. For example, feedback on a summary
    has only `score` and `bar`.

    Attributes:
        verdict: The verdict on a program, such as "WA" (wrong answer).
        failed: The failed tests, each with these keys: `number` (from 1), `input`, `output` (the expected
            output) and `actual` (the program's output; None if it is not shown to the model).
        compile_log: The messages of the compiler if the program does not compile.
        score: The metric's score of a summary.
        bar: The lowest score with which a summary is accepted.
    """

    verdict: str | None = None
    failed: Sequence[Mapping[str, Any]] = ()
    compile_log: str | None = None
    score: float | None = None
    bar: float | None = None


def check_messages(
    prompts: Prompts,
    rounds: Sequence[Round],
    items: Sequence[RepairItem],
    bar: float | None,
    shows_output: bool,
) -> None:
    """Make the messages of all rounds for all items, with invented feedback on the model's replies.

    Most wrong templates are thus found before the first request.

    Args:
        prompts: The templates of the messages.
        rounds: The rounds (requests) of a conversation.
        items: The incorrect programs, or the code to summarize.
        bar: The lowest score with which a summary is accepted; None if the items are programs.
        shows_output: Whether the model is shown what a program prints in failed tests.

    Raises:
        InputError: A template is wrong, or the first request has no message.
    """
    for item in items:
        for round_ in dict.fromkeys(rounds):
            is_first = round_ is rounds[0]
            feedback = _invented_feedback(item, bar, shows_output, round_.keeps_history)
            made = [round_messages(prompts, round_, item, each, is_first) for each in feedback]
            if is_first and not any(made):
                raise InputError(f"item {item.id}: the first request has no message")


def _invented_feedback(
    item: RepairItem, bar: float | None, shows_output: bool, about_reply: bool
) -> list[Feedback]:
    """Return feedback of many kinds on an imagined program or summary.

    Args:
        item: The incorrect program with its tests, or the code to summarize.
        bar: The lowest score with which a summary is accepted; None if the item is a program.
        shows_output: Whether failed tests have the program's output.
        about_reply: Whether the feedback may be about a reply of the model. A reply without a program has no
            output, even if outputs are shown.
    """
    if bar is not None:
        return [Feedback(score=score, bar=bar) for score in (0.0, None)]
    compiler = Feedback("CE", compile_log="error: expected ';'")
    outputs = [""] if shows_output else [None]
    feedback = [Feedback(), compiler]
    for verdict in VERDICTS:
        if verdict in ("AC", "CE"):
            continue
        for output in [None] if verdict == "NC" and about_reply else outputs:
            failed = [
                {"number": number, "input": test.input, "output": test.output, "actual": output}
                for number, test in enumerate(item.tests, 1)
            ]
            feedback += [Feedback(verdict, failed[:count]) for count in (1, 2) if len(failed) >= count]
    return feedback


def round_messages(
    prompts: Prompts, round_: Round, item: RepairItem, feedback: Feedback, is_first: bool
) -> list[Message] | None:
    """Make the messages that are sent to the model in a round (request) of a conversation.

    A round can add help, such as a tutor's hint or the failed tests. The first round of an attempt is never
    skipped. A later round is skipped if it has no help to add. For example, a round that adds only a tutor's
    hint is skipped if the item has no hint.

    Args:
        prompts: The templates of the messages.
        round_: The round: which templates it uses, and which help it adds.
        item: The incorrect program, or the code to summarize.
        feedback: What is wrong with the model's last reply; in a new conversation, what is wrong with the
            incorrect program. It may be empty.
        is_first: Whether this is the first request of the attempt.

    Returns:
        The messages; None if the round must be skipped.

    Raises:
        InputError: A template is wrong.
    """
    parts = {
        "guidance": item.guidance,
        "solution": item.solution,
        "tests": feedback.failed or feedback.compile_log,
        SCORE: feedback.bar,
    }
    added = [part for part in round_.adds if parts[part] not in (None, "", ())]
    if not (is_first or added):
        return None
    values: dict[str, Any] = dict.fromkeys(VARIABLES)
    values["item"] = {name: getattr(item, name) for name in _SHOWN}
    values["item"]["files"] = asdict(item.files) if item.files else None
    values |= {part: parts[part] for part in ("guidance", "solution") if part in added}
    if "tests" in added:
        values |= {"failed": feedback.failed or None, "compile_log": feedback.compile_log}
    if round_.keeps_history:
        values |= {"verdict": feedback.verdict, "score": feedback.score, "bar": feedback.bar}
    texts = [prompts.render(name, values) for name in round_.messages]
    return [{"role": "user", "content": text} for text in texts if text]
