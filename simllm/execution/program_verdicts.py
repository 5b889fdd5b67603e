"""Verdicts on programs: a program is run on tests, and gets a verdict such as "wrong answer"."""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase

from simllm.errors import InputError
from simllm.execution.limits import MIB, Limits
from simllm.execution.messages import Outcome
from simllm.execution.output_comparison import comparison
from simllm.execution.sandbox import Sandbox
from simllm.execution.toolchains import TOOLCHAINS, Program, compile_program

# no code, compile error, accepted, wrong answer, presentation error (equal without white space), time limit,
# memory limit, output limit, runtime error, file error (no output file)
VERDICTS = ("NC", "CE", "AC", "WA", "PE", "TL", "ML", "OL", "RE", "FE")
_OF_LIMIT = {"time": "TL", "memory": "ML", "output": "OL"}
_RULES = 3  # increase it after a change that can change verdicts, so that stored verdicts are not reused
_PLAIN_NAME = re.compile(r"(?!\.\.?$)[^/\0*?\[]+")
_LONGEST_NAME = 255  # bytes, of Linux


@dataclass(frozen=True)
class JudgeTest:
    """A test of a program: what it reads, and what it is expected to write."""

    input: str
    output: str


@dataclass(frozen=True)
class ProgramFiles:
    """Plain names of the files from which a program reads its input and to which it writes its output."""

    input: str
    output: str

    def __post_init__(self) -> None:
        for name in (self.input, self.output):
            if not _PLAIN_NAME.fullmatch(name) or len(name.encode(errors="replace")) > _LONGEST_NAME:
                raise InputError(f"{name!r}: expected a plain file name")
        if _folded(self.input) == _folded(self.output):  # a program that writes nothing could pass
            raise InputError(f"{self.output!r}: the output file must not be the input file")

    def check(self, language: str) -> None:
        """Raise `InputError` if a name belongs to the program, or to code that the language could load."""
        for name in (self.input, self.output):
            if any(fnmatchcase(_folded(name), pattern) for pattern in TOOLCHAINS[language].taken):
                raise InputError(f"{name} is a file of the program itself, or could be run as a part of it")


def _folded(name: str) -> str:
    """Return a form that is equal for names that some file system takes for the same."""
    # Folding of case can undo the first normalization.
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


@dataclass(frozen=True)
class JudgedTest:
    """The result of a program on one test.

    Attributes:
        verdict: One of `VERDICTS`, such as "AC" (accepted).
        output: What the program wrote to standard output or to its output file; b"" without such a file.
    """

    verdict: str
    output: bytes
    outcome: Outcome


@dataclass(frozen=True)
class Judgement:
    """The verdict on a program.

    Attributes:
        verdict: "NC" (no code), "CE" (compile error), "AC" (accepted) if the program passed all tests, and
            otherwise the verdict of the first failed test. `VERDICTS` lists all verdicts.
        tests: The result of each test, in order. Empty if there is no code or the code does not compile.
        compile_log: The messages of the compiler.
    """

    verdict: str
    tests: tuple[JudgedTest, ...] = ()
    compile_log: str = ""


def judge(
    sandbox: Sandbox,
    language: str,
    code: str | None,
    tests: Sequence[JudgeTest],
    limits: Limits,
    files: ProgramFiles | None = None,
    compare: str = "lines",
) -> Judgement:
    """Compile a program once, run it on all tests, and give the verdict.

    Args:
        sandbox: The sandbox in which the program is compiled and run.
        language: cpp, python or java.
        code: The source code; None if a language model's reply had no code. The verdict is then "NC".
        tests: The tests. All tests are run, even after the program failed one.
        limits: The limits of the run on each test. `disk` does not count the program and its input file.
        files: The files that the program reads and writes; None for standard input and output.
        compare: The rule that compares outputs, as in `output_comparison.comparison`.

    Raises:
        InputError: The language or the comparison is not supported, the language's tools are not
            installed, or a file of the program could be run as code.
        SandboxError: The sandbox failed, so there is no verdict.
    """
    compared = comparison(compare)
    if code is None:
        return Judgement("NC")
    if files:
        files.check(language)
    program = compile_program(sandbox, language, code)
    if not program.outcome.succeeded:
        return Judgement("CE", (), program.compile_log)
    results = tuple(_judge_test(sandbox, program, test, limits, files, compared) for test in tests)
    verdict = next((result.verdict for result in results if result.verdict != "AC"), "AC")
    return Judgement(verdict, results, program.compile_log)


def _judge_test(
    sandbox: Sandbox,
    program: Program,
    test: JudgeTest,
    limits: Limits,
    files: ProgramFiles | None,
    compared: Callable[[bytes, bytes], str],
) -> JudgedTest:
    """Run a program on one test; `compared` gives the verdict on expected and actual output."""
    given, expected = (text.encode("utf-8", "surrogatepass") for text in (test.input, test.output))
    command = program.command(limits)
    there = program.files if files is None else {**program.files, files.input: given}
    size = sum(len(content) for content in there.values())
    # The working folder also holds the compiled program and its input file.
    enlarged = replace(limits, disk=limits.disk + math.ceil(size / MIB))
    if files is None:
        outcome = sandbox.run(command, there, given, enlarged)
        output: bytes | None = outcome.stdout
    else:
        outcome = sandbox.run(command, there, limits=enlarged, keep=(files.output,))
        output = outcome.files.get(files.output)
    return JudgedTest(_verdict(program, outcome, output, expected, limits, compared), output or b"", outcome)


def _verdict(
    program: Program,
    outcome: Outcome,
    output: bytes | None,
    expected: bytes,
    limits: Limits,
    compared: Callable[[bytes, bytes], str],
) -> str:
    if outcome.exceeded:
        return _OF_LIMIT[outcome.exceeded]
    # The address space is limited, too, so a program can fail before its resident memory exceeds the limit.
    if program.was_refused_memory(outcome):
        return "ML"
    if outcome.status != 0:
        return "RE"
    if output is None:
        return "FE"
    # A file is limited only by the size of its folder.
    return "OL" if len(output) > limits.output else compared(expected, output)


def verdict_key(
    language: str,
    code: str,
    tests: Sequence[JudgeTest],
    limits: Limits,
    version: str,
    files: ProgramFiles | None = None,
    compare: str = "lines",
) -> str:
    """Return a key for storing a verdict: the SHA-256 of everything that can change the verdict.

    `version` is the compiler's, from `toolchain_version`; all else is as for `judge`.
    """
    content = {
        "rules": _RULES,
        "language": language,
        "code": code,
        "tests": [asdict(test) for test in tests],
        "limits": asdict(limits),
        "version": version,
        "files": asdict(files) if files else None,
        "compare": compare,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
