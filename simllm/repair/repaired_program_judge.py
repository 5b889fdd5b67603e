"""The judge of repaired programs, which accepts a program if it passes all tests."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from simllm.code.code_from_reply import code_of_reply
from simllm.errors import InputError
from simllm.execution.compilers_and_interpreters import toolchain_version
from simllm.execution.program_verdicts import VERDICTS, judge, verdict_key
from simllm.execution.sandbox import Sandbox
from simllm.io.strict_dataclass_loading import build
from simllm.llm.records import KeptValues
from simllm.repair.attempt_results import TestResult
from simllm.repair.program_failure_feedback import MOST_LOG, MOST_OUTPUT, describe_failure
from simllm.repair.repair_items import RepairItem
from simllm.repair.reply_judge_interface import Judged
from simllm.repair.round_messages import Feedback


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

    def feedback(self, item: RepairItem, judged: Judged) -> Feedback:
        """Return feedback on a tested program: the compiler's messages, or the failed tests."""
        return describe_failure(item, judged, self._shows_output)

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
