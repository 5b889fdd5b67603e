"""The messages of a round of repair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from simllm.repair.prompt_texts import VARIABLES, Prompts
from simllm.repair.repair_items import RepairItem
from simllm.repair.strategies import SCORE, Round

Message = dict[str, str]  # role and content
# What a template may know of an item: never its fix, its reference or tests that were not failed.
_SHOWN = ("description", "language", "code", "files", "time", "memory")


@dataclass(frozen=True)
class Feedback:
    """What is wrong with a program or summary.

    Attributes:
        verdict: The verdict of a program.
        failed: The failed tests, each with `number`, `input`, `output` and, if it is shown, `actual`.
        compile_log: The messages of the compiler, if it refused the program.
        score: The score of a summary.
        bar: The lowest score of an accepted summary.
    """

    verdict: str | None = None
    failed: Sequence[Mapping[str, Any]] = ()
    compile_log: str | None = None
    score: float | None = None
    bar: float | None = None


def round_messages(
    prompts: Prompts, round_: Round, item: RepairItem, feedback: Feedback, is_first: bool
) -> list[Message] | None:
    """Write the messages that are sent to the model in a round.

    Args:
        prompts: The templates.
        round_: The round.
        item: The item.
        feedback: What is wrong with the last reply or, in a new conversation, with the code of the item.
        is_first: Whether this is the first round.

    Returns:
        The messages; None for a later round that adds nothing.

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
