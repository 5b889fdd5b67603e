"""Answers of a command that reads code, such as a summarizer or a repair tool; a stopped run is resumed."""

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
from simllm.evaluation.metamorphic.recorded_draws import SIDES, Draw
from simllm.io import files

ANSWERS = "answers.jsonl"


@dataclass(frozen=True)
class Question:
    """Code that a command is asked about.

    Attributes:
        id: The item.
        side: "original" or "transformed".
        arm: The rule that ran alone; empty for the variants of all rules.
        draw: The number of the draw.
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
        """Return the key of the answer in the record: a hash of the command, the code and the draw number."""
        parts = json.dumps([list(command), self.language, self.code, self.draw])
        return hashlib.sha256(parts.encode(errors="replace")).hexdigest()


def make_questions(
    items: Mapping[str, dict[str, Any]], variants: Iterable[dict[str, Any]], draws: int
) -> list[Question]:
    """Return the questions of a study: each original and each variant, as often as there are draws.

    Args:
        items: Items with `language` and `source`, by id.
        variants: Variants of these items, with `text` and possibly an `arm`.
        draws: How often each original and each variant is asked about.
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
            asked += [
                Question(variant["id"], side, arm, number, item["language"], code) for number in range(draws)
            ]
    return asked


class AnswerRecord:
    """The record of a tool's answers in a folder. A new answer is on disk before it counts.

    Args:
        folder: A folder of simllm.
        command: The words of the command.
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
        """Remove an incomplete last line of the file, which a killed run may have left."""
        content = self._file.read_bytes()
        if content and not content.endswith(b"\n"):
            with self._file.open("r+b") as file:
                file.truncate(content.rfind(b"\n") + 1)

    def ask(self, question: Question, timeout: float) -> dict[str, Any]:
        """Ask the command, and record its answer."""
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
        """Ask all questions whose answers are not on record; yield after each answer.

        Args:
            questions: The questions.
            parallel: The number of commands that run at the same time.
            timeout: The longest time of a command, in seconds; a command that takes longer counts as a crash.

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
        """Return the draws of questions whose answers are on record, in the order of the questions."""
        outputs = [self._known[question.key(self._command)]["output"] for question in questions]
        return [
            Draw(question.id, question.side, question.draw, None, output, "", question.arm)
            for question, output in zip(questions, outputs, strict=True)
        ]


def _environment(question: Question) -> dict[str, str]:
    """Return the environment variables of the command, with facts about the question.

    They do not say whether the code is the original or the variant.
    """
    return {"SIMLLM_LANGUAGE": question.language, "SIMLLM_DRAW": str(question.draw)}


def run_command(
    command: Sequence[str], text: str, environment: Mapping[str, str], timeout: float
) -> tuple[str, str]:
    """Run a command that reads a text and writes a text.

    Args:
        command: The words of the command.
        text: The text on its standard input.
        environment: Further environment variables.
        timeout: The longest time that the command may take, in seconds.

    Returns:
        The exit status, or "timeout", as text; and the standard output.

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
