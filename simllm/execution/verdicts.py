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
from simllm.execution.limits import Limits
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
_MIB = 1 << 20


@dataclass(frozen=True)
class JudgeTest:
    """A test of a program: an input and the expected output.

    Attributes:
        input: The text that the program reads.
        output: The text that the program is expected to write.
    """

    input: str
    output: str


@dataclass(frozen=True)
class ProgramFiles:
    """Names of the input and output file of a program that does not use standard input and output.

    Attributes:
        input: The name of the file that the program reads.
        output: The name of the file that the program writes.
    """

    input: str
    output: str

    def __post_init__(self) -> None:
        """Check the names of the program's input and output file.

        Raises:
            InputError: A name is too long, or is a path or a pattern instead of a plain file name.
        """
        for name in (self.input, self.output):
            if not _PLAIN_NAME.fullmatch(name) or len(name.encode(errors="replace")) > _LONGEST_NAME:
                raise InputError(f"{name!r}: expected a plain file name")
        if _folded(self.input) == _folded(self.output):  # a program that writes nothing could pass
            raise InputError(f"{self.output!r}: the output file must not be the input file")

    def check(self, language: str) -> None:
        """Check that neither file takes the place of a file that is run: the program must not be the input.

        Raises:
            InputError: A name belongs to the program, or to code that the language could load.
        """
        for name in (self.input, self.output):
            if any(fnmatchcase(_folded(name), pattern) for pattern in TOOLCHAINS[language].taken):
                raise InputError(f"{name} is a file of the program itself, or could be run as a part of it")


def _folded(name: str) -> str:
    """Return a form that is equal for names that some file system takes for the same."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


@dataclass(frozen=True)
class JudgedTest:
    """The result of a program on one test.

    Attributes:
        verdict: A verdict of two letters, such as "AC" (accepted); `VERDICTS` lists all verdicts.
        output: The bytes that the program wrote to standard output or to its output file; b"" if the output
            file does not exist.
        outcome: Exit status and resource use of the run.
    """

    verdict: str
    output: bytes
    outcome: Outcome


@dataclass(frozen=True)
class Judgement:
    """The verdict on a program.

    Attributes:
        verdict: "NC" if there is no code, "CE" (compile error) if the code does not compile, "AC" (accepted)
            if the program passed all tests. Otherwise the verdict of the first test that the program failed,
            such as "WA" (wrong answer). `VERDICTS` lists all verdicts.
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
        limits: The limits of the run on each test. The limit `disk` is raised by the size of the compiled
            program and of its input file, because both are in the working folder, too.
        files: The files that the program reads and writes; None for standard input and output.
        compare: The rule that compares outputs, as in `output_comparison.comparison`.

    Returns:
        The verdict on the program, the result of each test, and the messages of the compiler.

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
    """Run a program on one test, and judge its output.

    Args:
        sandbox: The sandbox in which the program is run.
        program: The compiled program.
        test: The test.
        limits: The limits of the run.
        files: The files that the program reads and writes; None for standard input and output.
        compared: The function that compares the expected with the actual output, and returns a verdict such
            as "AC" (accepted) or "WA" (wrong answer).
    """
    given, expected = (text.encode("utf-8", "surrogatepass") for text in (test.input, test.output))
    command = program.command(limits)
    there = program.files if files is None else {**program.files, files.input: given}
    size = sum(len(content) for content in there.values())
    enlarged = replace(limits, disk=limits.disk + math.ceil(size / _MIB))
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
    if program.was_refused_memory(outcome):
        return "ML"
    if outcome.status != 0:
        return "RE"
    if output is None:
        return "FE"
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

    Args:
        language: cpp, python or java.
        code: The source code.
        tests: The tests.
        limits: The limits of each test.
        version: The version of the compiler, from `toolchain_version`.
        files: The files that the program reads and writes; None for standard input and output.
        compare: The rule that compares outputs, as in `output_comparison.comparison`.
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
