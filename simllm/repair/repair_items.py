"""The input of `simllm repair`: incorrect programs with tests, or code to summarize."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from simllm.errors import InputError
from simllm.execution.compilers_and_interpreters import TOOLCHAINS
from simllm.execution.program_verdicts import JudgeTest, ProgramFiles
from simllm.execution.resource_limits import Limits
from simllm.io import read_json_lines
from simllm.io.strict_dataclass_loading import build


@dataclass(frozen=True)
class RepairItem:
    """An item: an incorrect program that a model repairs, or code that a model summarizes.

    Attributes:
        id: The unique name of the item.
        language: The programming language of the code; for programs, one of cpp, python and java.
        description: The task that the program should solve.
        tests: The tests of the program; empty for code to summarize.
        fix: A known correct program. Reports compare the size of the model's change to `code` with the size
            of the change that turns `code` into `fix`.
        guidance: A hint from a tutor.
        solution: A description of a correct solution.
        time: The time limit of a test in seconds; None for the default limit.
        memory: The memory limit of a test in MiB; None for the default limit.
        files: The names of the files that the program reads and writes; None for standard input and output.
        group: The name of a group of items for which separate results are reported.
        reference: The reference summary of the code; None for a program.
    """

    id: str
    code: str
    language: str | None = None
    description: str | None = None
    tests: tuple[JudgeTest, ...] = ()
    fix: str | None = None
    guidance: str | None = None
    solution: str | None = None
    time: float | None = None
    memory: int | None = None
    files: ProgramFiles | None = None
    group: str | None = None
    reference: str | None = None

    def __post_init__(self) -> None:
        self.limits  # noqa: B018 (its checks)

    @property
    def limits(self) -> Limits:
        """The limits for each test: the item's own if given, otherwise the defaults."""
        given = {"time": self.time, "memory": self.memory}
        return Limits(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]


def read_items(file: Path, are_summaries: bool = False) -> list[RepairItem]:
    """Read items from a file of JSON lines.

    Args:
        file: The file, with one item per line.
        are_summaries: Whether the items are code to summarize, not programs to repair.

    Raises:
        InputError: The file is empty, a key is unknown or missing, a value is wrong, or two items have the
            same id. The message names the line.
    """
    found: dict[str, RepairItem] = {}
    for where, row in read_json_lines.objects(file):
        item = build(RepairItem, row, where)
        if problem := _problem_of_summary(item) if are_summaries else _problem_of_program(item):
            raise InputError(f"{where}: {problem}")
        if item.id in found:
            raise InputError(f"{where}: id {item.id!r} for the second time")
        found[item.id] = item
    if not found:
        raise InputError(f"{file}: empty; expected a JSON object per line")
    return list(found.values())


def _problem_of_program(item: RepairItem) -> str | None:
    if missing := [name for name in ("language", "description") if getattr(item, name) is None]:
        return f"missing key {missing[0]}"
    if item.language not in TOOLCHAINS:
        return f"language {item.language!r}: expected one of {', '.join(TOOLCHAINS)}"
    if item.reference is not None:
        return "a reference is of a summary, which needs a metric as judge (--judge); programs have tests"
    if item.files:
        try:
            item.files.check(item.language)
        except InputError as error:
            return f"files: {error}"
    return None if item.tests else "expected at least one test under tests"


def _problem_of_summary(item: RepairItem) -> str | None:
    if item.reference is None:
        return "missing key reference; a metric as judge compares summaries to it"
    return "a summary is judged by a metric and has no tests" if item.tests else None
