"""Import of TutorCode, a data set of students' incorrect C++ programs with hints from tutors.

TutorCode was published together with the repair method CREF (Yang et al., ISSTA 2024).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.io import read_json_lines
from simllm.io.read_json_object import read_json

_CASES = "cases"
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


def read_tutorcode(folder: Path) -> Iterator[str]:
    """Convert the published files of TutorCode into JSON lines, the input of `simllm repair run`.

    Each file `NAME.json` in `folder` holds an incorrect program. The files `cases/PROBLEM/*.json` hold the
    tests of a programming problem.
    """
    paths = sorted((path for path in folder.glob("*.json") if _is_own(path, folder)), key=_order)
    if not paths:
        raise InputError(f"{folder}: holds no items (NAME.json)")
    known: dict[str, _Cases] = {}
    for path in paths:
        row = read_json(path)
        where = str(path)
        problem = str(read_json_lines.value_under(row, "problemId", where, "a number"))
        if problem not in known:
            # The number comes from a file that anybody may have written, and must not lead out of the folder.
            if Path(problem).name != problem or problem in ("", ".."):
                raise InputError(
                    f"{where}: problemId {problem[:40]!r}: expected the name of a folder in cases"
                )
            known[problem] = _read_cases(folder / _CASES / problem, folder)
        yield json.dumps(_item(row, path, problem, known[problem]), ensure_ascii=False) + "\n"


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
        {name: read_json_lines.text_under(row, name, where) for name in ("input", "output")}
        for where, row in rows
    ]
    return _Cases(folder, tests)


def _item(row: dict[str, Any], path: Path, problem: str, cases: _Cases) -> dict[str, Any]:
    """Convert a program of TutorCode into an item with the file's name as id and the problem as group."""
    where = str(path)
    judged = read_json_lines.value_under(row, "judgeResult", where, "a JSON object")
    if not isinstance(judged, dict):
        raise InputError(f"{where}: expected a JSON object under judgeResult")
    count = judged.get("case_cnt")
    # A download that broke off may lack tests; programs would then be accepted too easily.
    if count is not None and count != len(cases.tests):
        raise InputError(f"{cases.folder}: holds {len(cases.tests)} tests; {where} has case_cnt {count}")
    item: dict[str, Any] = {"id": path.stem, "language": "cpp", "group": problem}
    for name, key in _TEXTS.items():
        if name not in _OPTIONAL or row.get(key):
            item[name] = read_json_lines.text_under(row, key, where)
    # TutorCode has milliseconds and KiB, an item seconds and MiB.
    item["time"] = _number(judged, "timeLimit", where) / 1000
    item["memory"] = math.ceil(_number(judged, "memoryLimit", where) / 1024)
    if judged.get("fileName"):
        name = read_json_lines.text_under(judged, "fileName", where)
        item["files"] = {"input": f"{name}.in", "output": f"{name}.out"}
    return item | {"tests": cases.tests}


def _number(judged: dict[str, Any], key: str, where: str) -> float:
    value = read_json_lines.value_under(judged, key, where, "a number")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _LARGEST:
        raise InputError(f"{where}: expected a positive number under {key}, not {json.dumps(value)[:40]}")
    return value
