"""Judges of a model's replies: programs are judged by tests, summaries of code by a metric."""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from simllm.code.code_from_reply import code_of_reply
from simllm.execution.program_judge import judge, verdict_key
from simllm.execution.sandbox import Sandbox
from simllm.execution.toolchains import toolchain_version
from simllm.metrics.protocol import Example, Metric
from simllm.repair.attempt_results import TestResult
from simllm.repair.disk_cache import KeptValues
from simllm.repair.repair_items import RepairItem
from simllm.repair.round_messages import Feedback

_MOST_OUTPUT = 2000  # characters of a program's output that are stored
_MOST_LOG = 4000  # characters of the compiler's messages that are stored


@dataclass(frozen=True)
class Judged:
    """The judgement of a program or summary.

    Attributes:
        code: The program or summary that was judged; None if there is none, such as in a reply without code.
        accepted: Whether the program passes all tests, or the summary has a high enough score.
        verdict: The verdict on a program, such as "WA" (wrong answer); None for a summary.
        tests: The result of each test of the program. Empty for a summary, or if the program did not run.
        compile_log: The messages of the compiler if the program does not compile; otherwise "".
        score: The metric's score of the summary. None for a program, or if the score is not finite.
    """

    code: str | None
    accepted: bool
    verdict: str | None = None
    tests: tuple[TestResult, ...] = ()
    compile_log: str = ""
    score: float | None = None


class ReplyJudge(Protocol):
    """Interface of a judge, which decides whether a model's reply to an item is accepted.

    An item is an incorrect program with tests, or code to summarize.
    """

    def judge_reply(self, item: RepairItem, reply: str) -> Judged:
        """Decide whether the program or summary in a model's reply to an item is accepted.

        Args:
            item: The incorrect program that the model repairs, or the code that it summarizes.
            reply: The text of the reply.
        """

    def judge_code(self, item: RepairItem) -> Judged:
        """Judge the original code of an item, so that a prompt can show the tests that the code fails."""

    def feedback(self, item: RepairItem, judged: Judged) -> Feedback:
        """Return feedback for the model: what is wrong with its program or summary.

        Args:
            item: The incorrect program that the model repairs, or the code that it summarizes.
            judged: The judgement of the program or summary.
        """


class ProgramJudge:
    """Judge that accepts a model's corrected program if the program passes all tests.

    Each item has an incorrect program, which the model corrects, and the tests. At most one program per
    processor runs at the same time, because more programs would slow each other down.

    Args:
        sandbox: The sandbox in which programs are compiled and run.
        languages: The programming languages of the programs.
        verdicts: The cache of verdicts, so that no program is tested twice.
        compare: The rule that compares a program's output with the expected output: "lines", "tokens",
            "exact" or "float:1e-6" (numbers may have an error of up to 1e-6).
        shows_output: Whether the feedback contains the actual output of failed tests.

    Raises:
        InputError: The compiler or interpreter of a language is not installed.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        languages: Iterable[str],
        verdicts: KeptValues,
        compare: str = "lines",
        shows_output: bool = False,
    ) -> None:
        self.versions = {
            language: toolchain_version(sandbox, language) for language in sorted(set(languages))
        }
        self._sandbox, self._verdicts = sandbox, verdicts
        self._compare, self._shows_output = compare, shows_output
        self._processors = threading.Semaphore(len(os.sched_getaffinity(0)))

    def judge_reply(self, item: RepairItem, reply: str) -> Judged:
        """Judge the program in a model's reply by the tests of the item.

        A reply without a program is not accepted.

        Raises:
            SandboxError: The sandbox, in which programs run, failed, so there is no verdict.
        """
        try:
            return self._judge(item, code_of_reply(reply, item.language or "", is_program=True))
        except TimeoutError:  # the parser gave up
            return self._judge(item, None)

    def judge_code(self, item: RepairItem) -> Judged:
        """Judge the original incorrect program of an item by the tests of the item.

        Raises:
            SandboxError: The sandbox failed, so there is no verdict.
        """
        return self._judge(item, item.code)

    def feedback(self, item: RepairItem, judged: Judged) -> Feedback:
        """Return feedback on a judged program for the model.

        If the program does not compile, the feedback has the messages of the compiler. Otherwise it has the
        failed tests. If the model's reply has no program, all tests count as failed.
        """
        failed = [
            {
                "number": number,
                "input": test.input,
                "output": test.output,
                "actual": result.output if result and self._shows_output else None,
            }
            for number, (test, result) in enumerate(
                zip(item.tests, judged.tests or [None] * len(item.tests), strict=True), 1
            )
            if result is None or result.verdict != "AC"
        ]
        if judged.verdict == "CE":
            return Feedback(judged.verdict, compile_log=judged.compile_log or "(no message)")
        return Feedback(judged.verdict, failed)

    def _judge(self, item: RepairItem, code: str | None) -> Judged:
        if code is None:
            return Judged(None, False, "NC")
        language = item.language or ""
        version = self.versions[language]
        key = verdict_key(language, code, item.tests, item.limits, version, item.files, self._compare)
        value = self._verdicts.get(key, lambda: self._run(item, code))
        tests = tuple(TestResult(*test) for test in value["tests"])
        return Judged(code, value["verdict"] == "AC", value["verdict"], tests, value["compile_log"])

    def _run(self, item: RepairItem, code: str) -> dict[str, Any]:
        """Run a program on all tests of an item.

        Returns:
            A JSON object with these keys:

            - "verdict": The verdict on the program, such as "AC" (accepted).
            - "tests": For each test, a pair: its verdict, and the beginning of the program's output.
            - "compile_log": The messages of the compiler if the program does not compile; otherwise "".
        """
        language, limits = item.language or "", item.limits
        with self._processors:
            found = judge(self._sandbox, language, code, item.tests, limits, item.files, self._compare)
        return {
            "verdict": found.verdict,
            "tests": [
                (one.verdict, one.output[: 4 * _MOST_OUTPUT].decode(errors="replace")[:_MOST_OUTPUT])
                for one in found.tests
            ],
            "compile_log": found.compile_log[:_MOST_LOG] if found.verdict == "CE" else "",
        }


class SummaryJudge:
    """Judge that scores summaries of code with a metric, which compares them with reference summaries.

    Args:
        metric: The metric.
        bar: The lowest score with which a summary is accepted.
        scores: The cache of scores.
    """

    def __init__(self, metric: Metric, bar: float, scores: KeptValues) -> None:
        self._metric, self._bar, self._scores = metric, bar, scores
        self._lock = threading.Lock()  # a metric need not allow threads

    def judge_reply(self, item: RepairItem, reply: str) -> Judged:
        """Score a model's reply with the metric, and accept it if the score is high enough.

        The whole reply is the summary of the code.
        """
        return self._judge(item, reply.strip())

    def judge_code(self, item: RepairItem) -> Judged:
        """Return a rejection without a score: the original code of an item is not a summary."""
        return Judged(None, False)

    def feedback(self, item: RepairItem, judged: Judged) -> Feedback:
        """Return feedback for the model: the score of its summary, and the lowest score that is accepted."""
        return Feedback(score=judged.score, bar=self._bar)

    def _judge(self, item: RepairItem, summary: str) -> Judged:
        content = [self._metric.signature, summary, item.reference, item.code, item.language]
        key = hashlib.sha256(json.dumps(content).encode()).hexdigest()
        score = self._scores.get(key, lambda: self._score(item, summary))
        return Judged(summary, score is not None and score >= self._bar, score=score)

    def _score(self, item: RepairItem, summary: str) -> float | None:
        example = Example(summary, item.reference or "", item.code, item.language)
        with self._lock:
            score = float(self._metric.score([example]).values[0])
        return score if math.isfinite(score) else None
