"""Answers of a tool about code, stored in a file so that a stopped study can be resumed.

A tool is a program that reads code and writes an answer, such as a summary or corrected code. A command runs
the tool. A question is a piece of code for which an answer of the tool is needed. If a study is stopped, the
next run asks only the questions whose answers are not stored.
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

    A tool is a program that reads code and writes an answer, such as a summary or corrected code. The output
    of the command is the answer. If several answers about the same code are needed, each of them has its own
    question.

    Attributes:
        id: The id of the item to which the code belongs. An item is a piece of code in its original form and
            in rewritten forms.
        side: "original" or "transformed": whether the code is the original or was rewritten.
        arm: The name of the rewriting rule, if the code was rewritten by a single rule; empty if it was
            rewritten by all rules together.
        draw: The number of the answer among the answers for the same code, counted from 0.
        language: The language of the code.
        code: The code.
    """

    id: str
    side: str
    arm: str
    draw: int
    language: str
    code: str

    def key(self, command: Sequence[str]) -> str:
        """Return the key of the stored answer to this question: a hash.

        The hash is computed from the command, the language, the code, and the number of the answer
        (a tool may answer the same question several times).

        Args:
            command: The words of the command that runs the tool.
        """
        parts = json.dumps([list(command), self.language, self.code, self.draw])
        return hashlib.sha256(parts.encode(errors="replace")).hexdigest()


def make_questions(
    items: Mapping[str, dict[str, Any]], variants: Iterable[dict[str, Any]], draws: int
) -> list[Question]:
    """List the runs of a tool that a study needs: `draws` runs on each piece of code.

    A tool is a program that reads code and writes an answer, such as a summary or corrected code. Each run of
    the tool on a piece of code is called a question. The pieces of code are the original code of items, and
    its rewritten forms, which are called variants. Items without a variant get no questions.

    The questions about a piece of code are numbered from 0. If a variant equals its original, the variant's
    questions are numbered from `draws` instead. Answers are stored by code and number, so that the original
    and the variant do not share answers.

    Args:
        items: The items by id. An item has the keys `language` and `source` (the original code).
        variants: The variants of these items. A variant has the keys `id` (of the item), `text` (the
            rewritten code) and possibly `arm` (the name of the rewriting rule, if only one was used).
        draws: The number of answers to get about each original and about each variant.
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
            first = draws if side == SIDES[1] and code == item["source"] else 0
            asked += [
                Question(variant["id"], side, arm, number, item["language"], code)
                for number in range(first, first + draws)
            ]
    return asked


class AnswerRecord:
    """The answers of a tool to the questions of a study, stored in a file.

    A tool is a program that reads code and writes an answer, such as a summary or corrected code. A command
    runs the tool. A question is a piece of code for which an answer is needed. Each new answer is written to
    disk at once, so that it is not lost if the run is stopped.

    Args:
        folder: The folder with the file `answers.jsonl`. Earlier answers in the file are loaded; the file may
            be missing.
        command: The words of the tool's command, such as ["python", "tool.py"].
    """

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
        """Remove the last line of the file if it is incomplete.

        The line is incomplete if an earlier run was killed while it wrote the line.
        """
        content = self._file.read_bytes()
        if content and not content.endswith(b"\n"):
            with self._file.open("r+b") as file:
                file.truncate(content.rfind(b"\n") + 1)

    def _ask(self, question: Question, runner: CommandRunner, timeout: float) -> None:
        """Run the tool on a piece of code, and append its answer to the file of answers."""
        variables = environment(question.language, question.draw)
        status, output = runner.run(self._command, question.code, variables, timeout)
        key = question.key(self._command)
        row = {"key": key, "status": status, "output": output if status == "0" else None}
        line = json.dumps(row, ensure_ascii=False).encode(errors="replace") + b"\n"
        with self._lock:
            with self._file.open("ab") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            self._known[key] = row

    def ask_all(self, questions: Sequence[Question], parallel: int, timeout: float) -> Iterator[None]:
        """Run the tool on each question that has no stored answer yet, and store the answers.

        Args:
            questions: The questions.
            parallel: The number of commands that run at the same time.
            timeout: The time limit of a command, in seconds. A command that exceeds it counts as a crash.

        Yields:
            None after each answer, so that the caller can show progress.

        Raises:
            InputError: The command cannot be started.
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
        """Return the stored answers of a tool to questions, in the order of the questions.

        A question is a piece of code for which an answer of the tool is needed. A `Draw` is one answer. The
        field `success` of each answer is None, because the answers are judged later. The field `output` is
        None if the tool crashed.

        Args:
            questions: The questions. Each must have a stored answer.
        """
        outputs = [self._known[question.key(self._command)]["output"] for question in questions]
        return [
            Draw(question.id, question.side, question.draw, None, output, "", question.arm)
            for question, output in zip(questions, outputs, strict=True)
        ]
