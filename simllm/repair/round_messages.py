"""The messages of each round of a conversation."""

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
    """Feedback for a model on its last program or summary; attributes that do not apply keep their defaults.

    Attributes:
        failed: The failed tests, each with these keys: `number` (from 1), `input`, `output` (the expected
            output) and `actual` (the program's output; None if it is not shown to the model).
        compile_log: The messages of the compiler if the program does not compile.
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
    """Make all messages with invented feedback, so that most wrong templates are found before the first
    request.
    """
    # Whether a template works depends on the item: a hint or the files may be missing.
    for item in items:
        # A strategy may repeat its last round up to a thousand times.
        for round_ in dict.fromkeys(rounds):
            is_first = round_ is rounds[0]
            feedback = _invented_feedback(item, bar, shows_output, round_.keeps_history)
            made = [round_messages(prompts, round_, item, each, is_first) for each in feedback]
            if is_first and not any(made):
                raise InputError(f"item {item.id}: the first request has no message")


def _invented_feedback(
    item: RepairItem, bar: float | None, shows_output: bool, about_reply: bool
) -> list[Feedback]:
    """Return feedback of many kinds; `about_reply` tells whether it may be about a reply of the model."""
    if bar is not None:
        return [Feedback(score=score, bar=bar) for score in (0.0, None)]
    compiler = Feedback("CE", compile_log="error: expected ';'")
    outputs = [""] if shows_output else [None]
    feedback = [Feedback(), compiler]
    for verdict in VERDICTS:
        # An accepted program needs no feedback; CE is `compiler`, above.
        if verdict in ("AC", "CE"):
            continue
        # A reply without a program has no output, even if outputs are shown.
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
    """Make the messages of a round; None if the round must be skipped.

    The first round of an attempt is never skipped. A later round is skipped if the item or the feedback has
    none of the parts that the round adds. In a new conversation, `feedback` is about the incorrect program.
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
