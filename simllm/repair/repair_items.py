"""Items to repair: incorrect programs with tests, or code whose summary is to be written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from simllm.errors import InputError
from simllm.execution.program_judge import JudgeTest, ProgramFiles
from simllm.execution.run_messages import Limits
from simllm.execution.toolchains import TOOLCHAINS
from simllm.io import files
from simllm.io.strict_loading import build


@dataclass(frozen=True)
class RepairItem:
    """An incorrect program with tests, or code with the reference of its summary.

    Attributes:
        id: The unique name of the item.
        code: The incorrect program, or the code to summarize.
        language: The language of the code; programs are in cpp, python or java.
        description: The task that the program should solve.
        tests: The tests of the program; empty for a summary.
        fix: A correct program. The size of a patch is compared with the change that leads to this program.
        guidance: A hint of a tutor.
        solution: A description of a correct solution.
        time: The time limit in seconds.
        memory: The memory limit in MiB.
        files: The files that the program reads and writes, instead of standard input and output.
        group: The group of the item, for figures by group.
        reference: The reference of the summary; None for a program.
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
        """Check the limits.

        Raises:
            InputError: A limit is not a positive number.
        """
        self.limits  # noqa: B018 (its checks)

    @property
    def limits(self) -> Limits:
        """The limits of time and memory for each test."""
        given = {"time": self.time, "memory": self.memory}
        return Limits(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]


def read_items(file: Path, are_summaries: bool = False) -> list[RepairItem]:
    """Read items from JSON lines, one per line.

    Args:
        file: The file.
        are_summaries: Whether the items are code to summarize, not programs to repair.

    Raises:
        InputError: The file is empty, or a line has a wrong, unknown or missing key, or an id for the second
            time. The message names the line.
    """
    found: dict[str, RepairItem] = {}
    for where, row in files.objects(file):
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
    if item.files and (own := {item.files.input, item.files.output} & set(TOOLCHAINS[item.language].keep)):
        return f"files: {own.pop()} is a file of the program itself"
    return None if item.tests else "expected at least one test under tests"


def _problem_of_summary(item: RepairItem) -> str | None:
    if item.reference is None:
        return "missing key reference; a metric as judge compares summaries to it"
    return "a summary is judged by a metric and has no tests" if item.tests else None
