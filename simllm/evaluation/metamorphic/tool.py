"""The tool under test, a command or a language model: the questions to it, and its recorded answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.evaluation.metamorphic.commands import (
    LARGEST_OUTPUT,
    TIMEOUT,
    TOO_LONG,
    CommandRunner,
    item_folder,
)
from simllm.evaluation.metamorphic.results import SIDES, Draw
from simllm.execution.watchdog import as_ended
from simllm.llm import session as llm
from simllm.llm.generation import render_prompts
from simllm.llm.model import content_hash
from simllm.llm.records import ReplyRecord, Slot
from simllm.llm.reply import Reply, from_row

ANSWERS = "answers.jsonl"


# Fields that tell how an answer is judged, or what a study knows about an item; tools must not see them. The
# code of an item reaches them in another way.
_HIDDEN = frozenset("reference label nll group names where source files variants".split())


def fields_for(item: Mapping[str, Any], variant: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the fields and files of an item that a tool sees with its code, or with that of a variant.

    In all texts, the functions that the variant renamed have their new names: a failing test has to call
    functions that exist.
    """
    shown = {name: value for name, value in item.items() if name not in _HIDDEN}
    shown["files"] = item.get("files") or {}
    if variant is None or not variant.get("names"):
        return shown
    # Only here: recorded results can be read without the extra `code`.
    from simllm.perturb.code.restoring import renamed_functions

    renamed = renamed_functions(variant["text"], item["language"], variant["names"])
    kept = {name: shown[name] for name in ("id", "language")}
    return {name: _renamed(value, renamed) for name, value in shown.items()} | kept


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Replace names in all texts of a JSON value, but not in the keys of objects."""
    from simllm.perturb.code.restoring import rename_text

    if isinstance(value, str):
        return rename_text(value, names)
    if isinstance(value, list):
        return [_renamed(part, names) for part in value]
    if isinstance(value, dict):
        return {key: _renamed(part, names) for key, part in value.items()}
    return value


@dataclass(frozen=True, eq=False)
class Question:
    """A piece of code about which a tool is asked once.

    Attributes:
        id: The id of the item.
        side: "original" or "transformed".
        draw: The number of the answer among the answers for the same code, counted from 0.
        variant: The number of the variant among those of the item; 0 for an original.
        fields: What the tool sees besides the code, as `fields_for` returns it.
    """

    id: str
    side: str
    arm: str
    draw: int
    language: str
    code: str
    variant: int = 0
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def slot(self) -> Slot:
        """The slot of the recorded answer."""
        # Without id, side and arm: two rules that give the same code share its answers.
        return Slot(sample=self.draw + 1)


def make_questions(
    items: Mapping[str, dict[str, Any]], variants: Iterable[dict[str, Any]], draws: int
) -> list[Question]:
    """List `draws` questions about each original and each variant, without items that have no variant.

    An item has the keys `language` and `source`. A variant has `id` (of the item), `text` and possibly `arm`.
    """
    asked: list[Question] = []
    originals = set()
    for variant in variants:
        item = items[variant["id"]]
        texts = {SIDES[1]: variant["text"]}
        if variant["id"] not in originals:
            originals.add(variant["id"])
            texts = {SIDES[0]: item["source"], **texts}
        for side, code in texts.items():
            is_variant = side == SIDES[1]
            arm, of_variant = (variant.get("arm") or "", variant.get("variant", 0)) if is_variant else ("", 0)
            fields = fields_for(item, variant if is_variant else None)
            # Answers are stored by code and number. A variant that equals its original gets other numbers and
            # thus its own answers: their difference shows the noise of the draws.
            first = draws if side == SIDES[1] and code == item["source"] else 0
            asked += [
                Question(variant["id"], side, arm, number, item["language"], code, of_variant, fields)
                for number in range(first, first + draws)
            ]
    return asked


Answers = Callable[[Question], Reply | None]  # finds the recorded answer to a question


class CommandTool:
    """A tool that is a command: it reads code on its standard input, and writes an answer."""

    def __init__(self, command: Sequence[str], record: ReplyRecord) -> None:
        self._command, self._record = list(command), record

    def _request(self, question: Question) -> dict[str, Any]:
        """Return what identifies a question to this command in the record, apart from the slot."""
        about = [question.language, question.code, dict(question.fields)]
        return {"command": self._command, "prompt": content_hash(about)}

    def find(self, question: Question) -> Reply | None:
        """Return the recorded answer to a question; None if there is none."""
        row = self._record.find(self._request(question), question.slot)
        return None if row is None else from_row(row)

    def ask_all(self, questions: Sequence[Question], parallel: int, timeout: float) -> Iterator[None]:
        """Ask the questions without a recorded answer, `parallel` at a time; yield after each answer.

        A command that runs for more than `timeout` seconds counts as a crash.
        """
        unknown = {
            (content_hash(self._request(one)), one.slot): one for one in questions if self.find(one) is None
        }
        # The runner is left first: it kills the commands for which the threads of the pool wait.
        with ThreadPoolExecutor(parallel) as pool, CommandRunner() as runner:
            futures = [pool.submit(self._ask, question, runner, timeout) for question in unknown.values()]
            try:
                for future in as_ended(futures):
                    future.result()
                    yield
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _ask(self, question: Question, runner: CommandRunner, timeout: float) -> None:
        """Run the command on a piece of code, and record its answer."""
        words = [word.replace("{id}", question.id) for word in self._command]
        with item_folder(question.fields) as folder:
            # None of these variables tells whether the code is rewritten.
            variables = {
                "SIMLLM_ID": question.id,
                "SIMLLM_LANGUAGE": question.language,
                "SIMLLM_DRAW": str(question.draw),
                "SIMLLM_FOLDER": folder,
            }
            status, output = runner.run(words, question.code, variables, timeout)
        reasons = {TIMEOUT: "timeout", TOO_LONG: f"answer above {LARGEST_OUTPUT >> 20} MiB"}
        failure = reasons.get(status, f"exit status {status}")
        # The output of a failed command is no answer.
        reply = Reply(output) if status == "0" else Reply(None, failure=failure)
        self._record.keep(self._request(question), question.slot, reply)


class ModelTool:
    """A tool that is a language model: a template makes the prompt from the code and fields of an item."""

    def __init__(self, questions: Sequence[Question], template: Path, session: llm.Session) -> None:
        self._session = session
        # The draws of a piece of code have the same prompt.
        firsts = {(one.id, one.side, one.arm, one.variant): one for one in questions}
        for one in firsts.values():
            if "code" in one.fields:
                raise InputError(f'the item {one.id} has the field "code", which is the code in templates')
        rows = [(f"the item {one.id}", {**one.fields, "code": one.code}) for one in firsts.values()]
        prompts = dict(zip(firsts, render_prompts(rows, template), strict=True))
        self._prompts = {
            one: llm.Question(prompts[one.id, one.side, one.arm, one.variant], one.slot) for one in questions
        }

    def find(self, question: Question) -> Reply | None:
        """Return the recorded answer to a question; None if there is none."""
        return self._session.find(self._prompts[question])

    def ask_all(self, questions: Sequence[Question]) -> Iterator[None]:
        """Ask the questions without a recorded answer; yield after each answer.

        Raises:
            LostReplyError: The endpoint is lost, or a limit is reached. The questions can be asked again.
        """
        unknown = {}
        for question in questions:
            asked = self._prompts[question]
            if self.find(question) is None:
                unknown[asked.prompt, asked.slot] = asked
        for _ in self._session.ask_all(unknown.values()):
            yield


def count_crashes(questions: Sequence[Question], answers: Answers) -> Counter[str]:
    """Count the questions without an answer by the reason, such as "timeout" or "exit status 1"."""
    found = (answers(question) for question in questions)
    return Counter(reply.failure for reply in found if reply is not None and reply.failure is not None)


def collect_draws(questions: Sequence[Question], answers: Answers) -> list[Draw]:
    """Return the recorded answers to questions, in order and not judged."""
    draws = []
    for question in questions:
        reply = answers(question)
        output = None if reply is None else reply.text
        draws.append(
            Draw(
                question.id,
                question.side,
                question.draw,
                output=output,
                arm=question.arm,
                variant=question.variant,
            )
        )
    return draws
