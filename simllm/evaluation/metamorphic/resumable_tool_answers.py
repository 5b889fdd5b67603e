"""Answers of a tool, stored in a file so that a stopped study can be resumed.

A question is one run of the tool's command on one piece of code. The next run of a stopped study asks only
the questions whose answers are not stored.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.evaluation.metamorphic.read_tool_results import SIDES, Draw
from simllm.evaluation.metamorphic.tool_command import (
    LARGEST_OUTPUT,
    TIMEOUT,
    TOO_LONG,
    CommandRunner,
    environment,
)
from simllm.io import read_json_lines

ANSWERS = "answers.jsonl"


@dataclass(frozen=True)
class Question:
    """A piece of code on which the command of a tool is run once.

    Attributes:
        id: The id of the item.
        side: "original" or "transformed".
        draw: The number of the answer among the answers for the same code, counted from 0.
    """

    id: str
    side: str
    arm: str
    draw: int
    language: str
    code: str

    def key(self, command: Sequence[str]) -> str:
        """Return the key of the stored answer to this question: a hash."""
        # Without side and arm: two rules that give the same code share its answers.
        parts = json.dumps([list(command), self.language, self.code, self.draw])
        return hashlib.sha256(parts.encode(errors="replace")).hexdigest()


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
            arm = variant.get("arm") or "" if side == SIDES[1] else ""
            # Answers are stored by code and number. A variant that equals its original gets other numbers and
            # thus its own answers: their difference shows the noise of the draws.
            first = draws if side == SIDES[1] and code == item["source"] else 0
            asked += [
                Question(variant["id"], side, arm, number, item["language"], code)
                for number in range(first, first + draws)
            ]
    return asked


class AnswerRecord:
    """The answers of one command to questions, in the file `answers.jsonl` of a folder."""

    def __init__(self, folder: Path, command: Sequence[str]) -> None:
        self._file = folder / ANSWERS
        self._command = list(command)
        self._lock = threading.Lock()
        self._known: dict[str, dict[str, Any]] = {}
        if self._file.exists():
            self._cut_half_a_line()
            for where, row in read_json_lines.objects(self._file):
                self._known[read_json_lines.text_under(row, "key", where)] = row
                status = read_json_lines.text_under(row, "status", where)
                if (status == "0") != isinstance(row.get("output"), str):
                    raise InputError(f"{where}: expected a text under output if the status is 0, else null")

    def _cut_half_a_line(self) -> None:
        """Remove the last line if an earlier run was killed while it wrote the line."""
        content = self._file.read_bytes()
        if content and not content.endswith(b"\n"):
            with self._file.open("r+b") as file:
                file.truncate(content.rfind(b"\n") + 1)

    def _ask(self, question: Question, runner: CommandRunner, timeout: float) -> None:
        """Run the tool on a piece of code, and append its answer to the file of answers."""
        variables = environment(question.language, question.draw)
        status, output = runner.run(self._command, question.code, variables, timeout)
        key = question.key(self._command)
        # The output of a failed command is no answer.
        row = {"key": key, "status": status, "output": output if status == "0" else None}
        line = json.dumps(row, ensure_ascii=False).encode(errors="replace") + b"\n"
        with self._lock:
            with self._file.open("ab") as file:
                file.write(line)
                file.flush()
                # An answer may have cost money; it must survive a power failure, too.
                os.fsync(file.fileno())
            self._known[key] = row

    def ask_all(self, questions: Sequence[Question], parallel: int, timeout: float) -> Iterator[None]:
        """Ask the questions without a stored answer, `parallel` at a time; yield after each answer.

        A command that runs for more than `timeout` seconds counts as a crash.
        """
        unknown = {question.key(self._command): question for question in questions}
        for key in self._known:
            unknown.pop(key, None)
        # The runner is left first: it kills the commands for which the threads of the pool wait.
        with ThreadPoolExecutor(parallel) as pool, CommandRunner() as runner:
            futures = [pool.submit(self._ask, question, runner, timeout) for question in unknown.values()]
            try:
                for future in as_completed(futures):
                    future.result()
                    yield
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def count_crashes(self, questions: Sequence[Question]) -> Counter[str]:
        """Count the questions without an answer by the reason, such as "timeout" or "exit status 1"."""
        statuses = (self._known[question.key(self._command)]["status"] for question in questions)
        reasons = {TIMEOUT: "timeout", TOO_LONG: f"answer above {LARGEST_OUTPUT >> 20} MiB"}
        return Counter(reasons.get(status, f"exit status {status}") for status in statuses if status != "0")

    def draws(self, questions: Sequence[Question]) -> list[Draw]:
        """Return the stored answers to questions, in order and not judged."""
        outputs = [self._known[question.key(self._command)]["output"] for question in questions]
        return [
            Draw(question.id, question.side, question.draw, None, output, "", question.arm)
            for question, output in zip(questions, outputs, strict=True)
        ]
