"""Judges of replies: of programs by their tests, and of summaries by a metric."""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from simllm.code.reply import code_of_reply
from simllm.errors import InputError
from simllm.execution.program_verdicts import VERDICTS, judge, verdict_key
from simllm.execution.sandbox import Sandbox
from simllm.execution.toolchains import toolchain_version
from simllm.io.reading import build
from simllm.llm.records import KeptValues
from simllm.metrics.interface import Example, Metric
from simllm.repair.items import RepairItem
from simllm.repair.results import TestResult
from simllm.repair.strategies import Feedback


@dataclass(frozen=True)
class Judged:
    """The judgement of a program or summary. The attributes are those of `RoundResult`."""

    code: str | None
    accepted: bool
    verdict: str | None = None
    tests: tuple[TestResult, ...] = ()
    compile_log: str = ""
    score: float | None = None
    is_ambiguous: bool = False


class ReplyJudge(Protocol):
    """Interface of a judge, which decides whether a reply is accepted."""

    def judge_reply(self, item: RepairItem, reply: str) -> Judged:
        """Judge a reply, which should contain a corrected program or a summary."""

    def judge_code(self, item: RepairItem) -> Judged:
        """Judge the incorrect program before its repair, so that a prompt can show which tests it fails."""

    def feedback(self, item: RepairItem, judged: Judged, shows_output: bool = False) -> Feedback:
        """Return feedback for the model: what is wrong with its program or summary.

        `shows_output` adds what the failed tests printed, whatever the settings of the run.
        """


MOST_OUTPUT = 2000  # characters of a program's output that are stored and fed back
MOST_LOG = 4000  # characters of the compiler's messages that are stored and fed back


def describe_failure(item: RepairItem, judged: Judged, shows_output: bool) -> Feedback:
    """Describe why a program was not accepted; `shows_output` adds its own output in failed tests."""
    if judged.verdict == "CE":
        return Feedback(judged.verdict, compile_log=judged.compile_log or "(no message)")
    failed = [
        {
            "number": number,
            "verdict": result.verdict if result else "NC",
            "input": test.input,
            "output": test.output,
            "actual": result.output if result and shows_output else None,
        }
        for number, (test, result) in enumerate(
            # Without a program nothing was run: there are no results, and all tests count as failed.
            zip(item.tests, judged.tests or [None] * len(item.tests), strict=True),
            1,
        )
        if result is None or result.verdict != "AC"
    ]
    return Feedback(judged.verdict, failed)


@dataclass(frozen=True)
class _Verdict:
    """A verdict in `verdicts.jsonl`."""

    verdict: str
    tests: tuple[tuple[str, ...], ...]  # the verdict and the output of each
    compile_log: str

    def __post_init__(self) -> None:
        if any(len(test) != 2 for test in self.tests):
            raise InputError("a test must be a verdict and an output")
        for verdict in (self.verdict, *(verdict for verdict, _ in self.tests)):
            if verdict not in VERDICTS:
                raise InputError(f"unknown verdict {verdict[:40]!r}")


class ProgramJudge:
    """Judge that accepts a corrected program if it passes all tests.

    `compare` is the rule that compares a program's output with the expected output. `shows_output` tells
    whether feedback contains the output of failed tests.

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
        # More programs than processors would slow each other down, and exceed their time limits. The
        # processors of this process may be fewer than those of the machine.
        self._processors = threading.Semaphore(len(os.sched_getaffinity(0)))

    def judge_reply(self, item: RepairItem, reply: str) -> Judged:
        """Run the tests on the program in a reply; a reply without a program is not accepted.

        Raises:
            SandboxError: The sandbox failed, so there is no verdict.
        """
        found = code_of_reply(reply, item.language or "", is_program=True, source=item.code)
        return replace(self._judge(item, found.text), is_ambiguous=found.is_ambiguous)

    def judge_code(self, item: RepairItem) -> Judged:
        """Run the tests on the original incorrect program, to find the tests that it fails.

        Raises:
            SandboxError: The sandbox failed, so there is no verdict.
        """
        return self._judge(item, item.code)

    def feedback(self, item: RepairItem, judged: Judged, shows_output: bool = False) -> Feedback:
        """Return feedback on a tested program: the compiler's messages, or the failed tests."""
        return describe_failure(item, judged, self._shows_output or shows_output)

    def _judge(self, item: RepairItem, code: str | None) -> Judged:
        if code is None:
            return Judged(None, False, "NC")
        language = item.language or ""
        version = self.versions[language]
        key = verdict_key(language, code, item.tests, item.limits, version, item.files, self._compare)
        value = self._verdicts.get(key, lambda: self._run(item, code))
        found = build(_Verdict, value, f"verdicts.jsonl: the stored verdict on item {item.id[:40]}")
        # No tests: the program did not compile.
        if len(found.tests) not in (0, len(item.tests)):
            raise InputError(f"verdicts.jsonl: the stored verdict on item {item.id[:40]} has other tests")
        tests = tuple(TestResult(verdict, output) for verdict, output in found.tests)
        return Judged(code, found.verdict == "AC", found.verdict, tests, found.compile_log)

    def _run(self, item: RepairItem, code: str) -> dict[str, Any]:
        """Run a program on all tests, and return the fields of `_Verdict` as a JSON object."""
        language, limits = item.language or "", item.limits
        # Only while a program runs: an attempt that waits for a reply leaves its processor to others.
        with self._processors:
            found = judge(self._sandbox, language, code, item.tests, limits, item.files, self._compare)
        return {
            "verdict": found.verdict,
            "tests": [
                # A character of UTF-8 has at most four bytes. Cut before it is decoded, because an output may
                # be huge.
                [one.verdict, one.output[: 4 * MOST_OUTPUT].decode(errors="replace")[:MOST_OUTPUT]]
                for one in found.tests
            ],
            "compile_log": found.compile_log[:MOST_LOG] if found.verdict == "CE" else "",
        }


class SummaryJudge:
    """Judge that scores summaries with a metric, against the reference summary of the item.

    `bar` is the lowest score of an accepted summary; `scores` is the cache of scores.
    """

    def __init__(self, metric: Metric, bar: float, scores: KeptValues) -> None:
        self._metric, self._bar, self._scores = metric, bar, scores
        self._lock = threading.Lock()  # a metric need not allow threads

    def judge_reply(self, item: RepairItem, reply: str) -> Judged:
        """Score a reply, all of which is the summary."""
        return self._judge(item, reply.strip())

    def judge_code(self, item: RepairItem) -> Judged:
        """Return the judgement "not accepted"; the method exists only for the interface."""
        return Judged(None, False)

    def feedback(self, item: RepairItem, judged: Judged, shows_output: bool = False) -> Feedback:
        """Return the score of the summary, and the lowest score that is accepted."""
        return Feedback(score=judged.score, bar=self._bar)

    def _judge(self, item: RepairItem, summary: str) -> Judged:
        content = [self._metric.signature, summary, item.reference, item.code, item.language]
        key = hashlib.sha256(json.dumps(content).encode()).hexdigest()
        score = self._scores.get(key, lambda: self._score(item, summary))
        # The file may have been edited; True would count as the score 1.
        if not (score is None or isinstance(score, float | int)) or isinstance(score, bool):
            raise InputError(f"verdicts.jsonl: a stored score must be a number, not {str(score)[:40]}")
        return Judged(summary, score is not None and score >= self._bar, score=score)

    def _score(self, item: RepairItem, summary: str) -> float | None:
        example = Example(summary, item.reference or "", item.code, item.language)
        with self._lock:
            score = float(self._metric.score([example]).values[0])
        return score if math.isfinite(score) else None
