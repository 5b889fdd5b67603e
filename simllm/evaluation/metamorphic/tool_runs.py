"""Runs of a tool on code, and the record of its answers.

The tool is a command, such as a summarizer or a repair tool. A question is a piece of code for which an
answer of the tool is needed. If a study is stopped, the next run asks only the questions whose answers are
not recorded.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.evaluation.metamorphic.recorded_answers import SIDES, Draw
from simllm.io import files

ANSWERS = "answers.jsonl"


@dataclass(frozen=True)
class Question:
    """A piece of code on which the command of a tool, such as a summarizer, is run once.

    The output of the command is the answer. If several answers about the same code are needed, each of them
    has its own question.

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
        """Return a hash under which a tool's answer to this question is stored.

        The hash is computed from the command, the language, the code, and the number of the answer.

        Args:
            command: The words of the command that runs the tool.
        """
        parts = json.dumps([list(command), self.language, self.code, self.draw])
        return hashlib.sha256(parts.encode(errors="replace")).hexdigest()


def make_questions(
    items: Mapping[str, dict[str, Any]], variants: Iterable[dict[str, Any]], draws: int
) -> list[Question]:
    """List the questions of a study: `draws` questions for each original and for each variant.

    A question is a piece of code on which the tool is run once. A variant is the rewritten code of an item.
    Items without a variant get no questions.

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

    The tool is a command, which reads code and prints its answer. A question is a piece of code for which an
    answer is needed. Each new answer is written to disk at once, so that it is not lost if the run is
    stopped.

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
            for where, row in files.objects(self._file):
                self._known[files.text_under(row, "key", where)] = row

    def _cut_half_a_line(self) -> None:
        """Remove the last line of the file if it is incomplete.

        The line is incomplete if an earlier run was killed while it wrote the line.
        """
        content = self._file.read_bytes()
        if content and not content.endswith(b"\n"):
            with self._file.open("r+b") as file:
                file.truncate(content.rfind(b"\n") + 1)

    def ask(self, question: Question, timeout: float) -> dict[str, Any]:
        """Run the tool's command on the code of a question, and store its answer in the file.

        Args:
            question: The question: a piece of code for which an answer of the tool is needed.
            timeout: The time limit of the command, in seconds.

        Returns:
            The stored record: a dict with the keys `key`, `status` and `output`. `key` is a hash of the
            question. `status` is the exit status as text, or "timeout" if the limit was exceeded. `output` is
            the answer; None unless the status is "0".

        Raises:
            InputError: The command cannot be started.
        """
        status, output = run_command(self._command, question.code, _environment(question), timeout)
        key = question.key(self._command)
        row = {"key": key, "status": status, "output": output if status == "0" else None}
        line = json.dumps(row, ensure_ascii=False).encode(errors="replace") + b"\n"
        with self._lock:
            with self._file.open("ab") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            self._known[key] = row
        return row

    def ask_all(self, questions: Sequence[Question], parallel: int, timeout: float) -> Iterator[None]:
        """Run the tool's command for each question that has no stored answer yet, and store the answers.

        A question is a piece of code for which an answer of the tool is needed.

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
        with ThreadPoolExecutor(parallel) as pool:
            futures = [pool.submit(self.ask, question, timeout) for question in unknown.values()]
            try:
                for future in as_completed(futures):
                    future.result()
                    yield
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def draws(self, questions: Sequence[Question]) -> list[Draw]:
        """Return the stored answers to questions, in the order of the questions.

        A question is a piece of code for which an answer of the tool is needed. A `Draw` is one answer. Its
        field `success` is None here, because the answers are judged later. Its field `output` is None if the
        tool crashed.

        Args:
            questions: The questions. Each must have a stored answer.
        """
        outputs = [self._known[question.key(self._command)]["output"] for question in questions]
        return [
            Draw(question.id, question.side, question.draw, None, output, "", question.arm)
            for question, output in zip(questions, outputs, strict=True)
        ]


def _environment(question: Question) -> dict[str, str]:
    """Return the environment variables for one run of a tool's command.

    SIMLLM_LANGUAGE is the language of the code. SIMLLM_DRAW is the number of this run among the runs on the
    same code, counted from 0. No variable tells the command whether the code is original or rewritten.

    Args:
        question: The code on which the command is run, with its language and the number of the run.
    """
    return {"SIMLLM_LANGUAGE": question.language, "SIMLLM_DRAW": str(question.draw)}


def run_command(
    command: Sequence[str], text: str, environment: Mapping[str, str], timeout: float
) -> tuple[str, str]:
    """Run a command that reads a text and writes a text.

    Args:
        command: The words of the command.
        text: The text on its standard input.
        environment: Environment variables to add to those of this process.
        timeout: The time limit of the command, in seconds. A command that exceeds it is killed.

    Returns:
        The exit status as text, or "timeout"; and the standard output, which is empty after a timeout.

    Raises:
        InputError: The command cannot be started.
    """
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **environment},
            start_new_session=True,
        )
    except OSError as error:
        raise InputError(f"{command[0]}: cannot be started ({error.strerror})") from None
    try:
        output, _ = process.communicate(text.encode(errors="replace"), timeout)
    except subprocess.TimeoutExpired:
        return "timeout", ""
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return str(process.returncode), output.decode(errors="replace")
