"""What an interrupted table holds; it is gone on with by the command that wrote it, or not at all.

Beside `FILE.partial` lies `FILE.partial.json`, which says by what its scores were measured.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from simllm.errors import InputError
from simllm.io.strict import read_json

COMPARED = 16  # rows at the end of what is there, whose texts are compared
_NUMBERS = ("score", "low", "high")  # columns; the others are as the input has them
Measure = dict[str, str]


@dataclass(frozen=True)
class Kept:
    """The rows that a table goes on after."""

    file: Path
    end: int  # bytes of them and the header; what follows was cut off by a kill
    total: float  # sum of their scores
    texts: list[list[str]]  # ids and texts of the last few

    def check(self, measure: Measure, texts: Sequence[Sequence[str]]) -> None:
        """Raise InputError unless they were measured alike and end with these ids and texts."""
        before = read_json(note(self.file))
        for key in measure:
            if before.get(key) != measure[key]:
                raise InputError(
                    f"{self.file}: begun with the {key} {before.get(key)}, not {measure[key]}; "
                    "go on with the options that it was begun with"
                )
        for old, new in zip(self.texts, texts, strict=True):
            for a, b in zip(old, new, strict=True):
                if a != b:
                    raise InputError(
                        f"{self.file}: has {_short(a)} where the input has {_short(b)}; go on with the "
                        "input that it was begun with"
                    )

    def cut(self) -> None:
        """Leave nothing but the rows."""
        with self.file.open("rb+") as data:
            data.truncate(self.end)


def kept(file: Path, columns: Sequence[str], header: str, wanted: int) -> Kept:
    """Read the rows that are there; raise InputError where they are not `wanted` rows of scores."""
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
        raise InputError(f"{file}: cannot be gone on with ({error.strerror})") from None
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
    """Raise InputError where an earlier run has left rows; under this header they could be gone on with."""
    try:
        with file.open("rb") as data:
            goes_on = header is not None and data.readline() == header.encode()
            rows = sum(line.endswith(b"\n") for line in data)
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    if rows:
        remedy = f"--skip {rows} goes on after them; else remove it" if goes_on else "remove it to start anew"
        raise InputError(f"{file}: has rows of an earlier run; {remedy}")


def note(file: Path) -> Path:
    """Where it is said by what the scores of an unfinished table are measured."""
    return file.with_name(file.name + ".json")


def _short(cell: str) -> str:
    return repr(cell if len(cell) <= 40 else cell[:39] + "…")
