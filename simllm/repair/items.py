"""Items of a run: incorrect programs with tests, or code to summarize; and the import of TutorCode."""

from __future__ import annotations

import json
import math
import re
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.execution.limits import Limits
from simllm.execution.program_verdicts import JudgeTest, ProgramFiles
from simllm.execution.toolchains import TOOLCHAINS
from simllm.io import reading
from simllm.io.reading import build, read_json


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
        group: The name of a group of items for which separate results are reported, such as a problem.
        tier: The name of the item's difficulty, for which separate results are reported, too.
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
    tier: str | None = None
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
    for where, row in reading.objects(file):
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


# Literals and comments up to the end of a line, in which white space counts; and all other white space.
_BLANKS = re.compile(
    r"""("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|//[^\n]*\n|^\s*\#[^\n]*\n)|\s+""", re.MULTILINE
)
# Signs that are another token without the white space between them. In `> >`, it seldom means anything.
_JOINED = frozenset("++ -- && || == <= >= != -> << :: += -= *= /= %= &= |= ^= // /* */ ##".split())


def drop_duplicates(items: Sequence[RepairItem]) -> tuple[list[RepairItem], dict[str, str]]:
    """Drop programs that are equal to an earlier one for the same task and tests, up to white space.

    Returns the kept items, and for the id of each dropped one that of the kept one.
    """
    kept: dict[tuple[object, ...], RepairItem] = {}
    dropped: dict[str, str] = {}
    for item in items:
        same = (item.language, item.description, item.tests, item.reference, _without_blanks(item))
        first = kept.setdefault(same, item)
        if first is not item:
            dropped[item.id] = first.id
    return list(kept.values()), dropped


def _without_blanks(item: RepairItem) -> str:
    """Return code without white space that means nothing; Python keeps its lines and their indentation."""
    return _python_tokens(item.code) if item.language == "python" else _BLANKS.sub(_blank, item.code)


def _blank(found: re.Match[str]) -> str:
    """Return what stays of a match of `_BLANKS`."""
    if kept := found[1]:
        return kept.strip() + ("\n" if kept.endswith("\n") else "")
    before, after = found.string[found.start() - 1 : found.start()], found.string[found.end() :][:1]
    words = all(one.isalnum() or one == "_" for one in (before or " ", after or " "))
    return " " if words or before + after in _JOINED else ""


def _python_tokens(code: str) -> str:
    """Return the tokens of Python code; for code without tokens, its lines that are not empty."""
    try:
        found = [
            (one.type, "" if one.type == tokenize.INDENT else one.string.strip("\r\n"))
            for one in tokenize.generate_tokens(StringIO(code).readline)
            if one.type != tokenize.NL
        ]
    except (tokenize.TokenError, SyntaxError):
        return "\n".join(line.rstrip() for line in code.splitlines() if line.strip())
    return repr(found)


_CASES = "cases"
_TIERS = "tiers.config"
_LARGEST = 1e12  # milliseconds, or KiB
# The texts of an item, and their keys in TutorCode, where "groudTruthCode" is misspelt.
_TEXTS = {
    "description": "problemDescription",
    "code": "incorrectCode",
    "fix": "groudTruthCode",
    "guidance": "tutorGuidance",
    "solution": "solutionDescription",
}
_OPTIONAL = ("fix", "guidance", "solution")


@dataclass(frozen=True)
class _Cases:
    """The tests of a programming problem, each with the keys "input" and "output", sorted by `_order`."""

    folder: Path
    tests: list[dict[str, str]]


def read_tutorcode(folder: Path, tiers: Path | None = None) -> Iterator[str]:
    """Convert the published files of TutorCode into JSON lines, the input of `simllm repair run`.

    Each file `NAME.json` in `folder` holds an incorrect program. The files `cases/PROBLEM/*.json` hold the
    tests of a programming problem. `tiers` is the file with the difficulty of the problems; by default,
    `tiers.config` in the folder, if it is there.
    """
    if tiers is None and _is_own(folder / _TIERS, folder):
        tiers = folder / _TIERS
    tier_of = {} if tiers is None else read_tiers(tiers)
    paths = sorted((path for path in folder.glob("*.json") if _is_own(path, folder)), key=_order)
    if not paths:
        raise InputError(f"{folder}: holds no items (NAME.json)")
    known: dict[str, _Cases] = {}
    for path in paths:
        row = read_json(path)
        where = str(path)
        problem = str(reading.value_under(row, "problemId", where, "a number"))
        if problem not in known:
            # The number comes from a file that anybody may have written, and must not lead out of the folder.
            if Path(problem).name != problem or problem in ("", ".."):
                raise InputError(
                    f"{where}: problemId {problem[:40]!r}: expected the name of a folder in cases"
                )
            known[problem] = _read_cases(folder / _CASES / problem, folder)
        item = _item(row, path, problem, known[problem])
        if problem in tier_of:
            item["tier"] = tier_of[problem]
        yield json.dumps(item, ensure_ascii=False) + "\n"
    if tiers is not None and (missing := sorted(known.keys() - tier_of.keys())):
        warnings.warn(f"{tiers}: has no tier of problem {', '.join(missing[:5])}", stacklevel=2)


def read_tiers(file: Path) -> dict[str, str]:
    """Read the difficulty of problems: in each line the problem's number, its topics, and its tier."""
    found: dict[str, str] = {}
    for number, line in enumerate(reading.whole_text(file).splitlines(), 1):
        words = line.split()
        if not words:
            continue
        if len(words) < 2:
            raise InputError(f"{file}, line {number}: expected a problem, its topic and its tier")
        if found.setdefault(words[0], words[-1]) != words[-1]:
            raise InputError(f"{file}, line {number}: a second tier of problem {words[0][:40]}")
    return found


def _order(path: Path) -> tuple[int, str]:
    """Sort names that are numbers as numbers, so that 10 comes after 9."""
    return int(path.stem) if path.stem.isdecimal() else -1, path.stem


def _is_own(path: Path, folder: Path) -> bool:
    """Return whether a path is a file in a folder, not a device, and not a link to a file elsewhere."""
    return path.is_file() and path.resolve().is_relative_to(folder.resolve())


def _read_cases(folder: Path, root: Path) -> _Cases:
    paths = sorted(folder.glob("*.json"), key=_order)
    if foreign := [path for path in paths if not _is_own(path, root)]:
        raise InputError(f"{foreign[0]}: expected a file in {root}, not a link to elsewhere")
    if not paths:
        raise InputError(f"{folder}: holds no tests (one JSON object a file, with input and output)")
    rows = [(str(path), read_json(path)) for path in paths]
    tests = [
        {name: reading.text_under(row, name, where) for name in ("input", "output")} for where, row in rows
    ]
    return _Cases(folder, tests)


def _item(row: dict[str, Any], path: Path, problem: str, cases: _Cases) -> dict[str, Any]:
    """Convert a program of TutorCode into an item with the file's name as id and the problem as group."""
    where = str(path)
    judged = reading.value_under(row, "judgeResult", where, "a JSON object")
    if not isinstance(judged, dict):
        raise InputError(f"{where}: expected a JSON object under judgeResult")
    count = judged.get("case_cnt")
    # A download that broke off may lack tests; programs would then be accepted too easily.
    if count is not None and count != len(cases.tests):
        raise InputError(f"{cases.folder}: holds {len(cases.tests)} tests; {where} has case_cnt {count}")
    item: dict[str, Any] = {"id": path.stem, "language": "cpp", "group": problem}
    for name, key in _TEXTS.items():
        if name not in _OPTIONAL or row.get(key):
            item[name] = reading.text_under(row, key, where)
    # TutorCode has milliseconds and KiB, an item seconds and MiB.
    item["time"] = _number(judged, "timeLimit", where) / 1000
    item["memory"] = math.ceil(_number(judged, "memoryLimit", where) / 1024)
    if judged.get("fileName"):
        name = reading.text_under(judged, "fileName", where)
        item["files"] = {"input": f"{name}.in", "output": f"{name}.out"}
    return item | {"tests": cases.tests}


def _number(judged: dict[str, Any], key: str, where: str) -> float:
    value = reading.value_under(judged, key, where, "a number")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _LARGEST:
        raise InputError(f"{where}: expected a positive number under {key}, not {json.dumps(value)[:40]}")
    return value
