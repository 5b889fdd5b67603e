"""Resuming of an interrupted table by the command that wrote it.

The rows of FILE are in `FILE.partial`. The note `FILE.partial.json` beside it holds what
decides on the scores. Only a partial file with such a note is ours; any other is never touched.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from simllm.errors import InputError
from simllm.io import files
from simllm.io.strict import read_json

COMPARED = 16  # rows at the end of a partial table, whose texts are compared with the input
_NUMBERS = ("score", "low", "high")  # columns of scores; the others are as in the input
_NOTED = {"scale", "signature"}  # the keys of a note
Measure = dict[str, str]  # a note: what decides on the scores


@dataclass(frozen=True)
class Kept:
    """The rows that a table already has."""

    file: Path
    end: int  # bytes of the header and the rows; a kill may have left a part of a row after them
    total: float  # sum of their scores
    texts: list[list[str]]  # ids and texts of the last few

    def check(self, measure: Measure, texts: Sequence[Sequence[str]]) -> None:
        """Raise InputError unless the rows have the same `measure` and end with these ids and texts."""
        before = read_json(_note(self.file))
        for key in measure:
            if before.get(key) != measure[key]:
                raise InputError(
                    f"{self.file}: begun with the {key} {before.get(key)}, not {measure[key]}; "
                    "use the options that it was begun with"
                )
        for old, new in zip(self.texts, texts, strict=True):
            for a, b in zip(old, new, strict=True):
                if a != b:
                    raise InputError(
                        f"{self.file}: has {_short(a)} where the input has {_short(b)}; use the "
                        "input that it was begun with"
                    )

    def cut(self) -> None:
        """Cut off what follows the rows."""
        with self.file.open("rb+") as data:
            data.truncate(self.end)


def kept(file: Path, columns: Sequence[str], header: str, wanted: int) -> Kept:
    """Read the rows of an earlier run; raise InputError unless they are ours, and `wanted` rows of scores."""
    _refuse_foreign(file)
    count, end, total, last = 0, 0, 0.0, deque[list[str]](maxlen=COMPARED)
    try:
        with file.open("rb") as data:
            for number, line in enumerate(data):
                if not line.endswith(b"\n"):
                    break
                if number:
                    cells = _cells(line, columns, f"{file}, line {number + 1}")
                    total += float(cells["score"])
                    last.append([cell for name, cell in cells.items() if name not in _NUMBERS])
                elif line != header.encode():
                    raise InputError(f"{file}: has other columns than {' '.join(columns)}")
                count, end = number, end + len(line)
    except OSError as error:
        raise InputError(f"{file}: cannot be resumed ({error.strerror})") from None
    if count != wanted:
        hint = f"; --skip {count} goes on after them" if count > wanted else ""
        raise InputError(f"{file}: holds {count} pairs, not the {wanted} to be skipped{hint}")
    return Kept(file, end, total, list(last))


def _cells(line: bytes, columns: Sequence[str], where: str) -> dict[str, str]:
    try:
        cells = dict(zip(columns, line.decode().rstrip("\n").split("\t"), strict=True))
        float(cells["score"])
    except ValueError:
        raise InputError(f"{where}: not a row of scores") from None
    return cells


def refuse(file: Path, header: str | None) -> None:
    """Raise InputError if a new table must not be begun in `file`.

    It must not if the file has rows of an earlier run, or is not ours. With this `header`, the
    rows could be resumed.
    """
    _refuse_foreign(file)
    try:
        with file.open("rb") as data:
            resumable = header is not None and data.readline() == header.encode()
            rows = sum(line.endswith(b"\n") for line in data)
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    if rows:
        remedy = (
            f"--skip {rows} goes on after them; else remove it" if resumable else "remove it to start anew"
        )
        raise InputError(f"{file}: has rows of an earlier run; {remedy}")


def begin(file: Path, measure: Measure) -> None:
    """Note what decides on the scores of a new table, which `refuse` has let pass."""
    file.unlink(missing_ok=True)  # no row is in it
    files.write(_note(file), json.dumps(measure, indent=1) + "\n")


def forget(file: Path) -> None:
    """Remove the note of a table."""
    _note(file).unlink(missing_ok=True)


def partial(output: Path) -> Path:
    """Return where the rows of `output` are until all of them are there."""
    return output.with_name(output.name + ".partial")


def _note(file: Path) -> Path:
    return file.with_name(file.name + ".json")


def _refuse_foreign(file: Path) -> None:
    """Raise InputError if `file` or its note exists, but is not ours."""
    ours = _is_note(_note(file))
    for path in (_note(file), file):
        if os.path.lexists(path) and not (ours and path.is_file() and not path.is_symlink()):
            raise InputError(f"{path}: is in the way, and not of simllm; move it, or name another -o")


def _is_note(file: Path) -> bool:
    try:
        values = read_json(file)
    except InputError:
        return False
    return values.keys() == _NOTED and all(isinstance(value, str) for value in values.values())


def _short(cell: str) -> str:
    return repr(cell if len(cell) <= 40 else cell[:39] + "…")
