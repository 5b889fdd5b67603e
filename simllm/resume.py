"""What an interrupted table holds; it is gone on with by the command that wrote it, or not at all."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from simllm.errors import InputError

COMPARED = 16  # rows at the end of what is there, that are made anew to compare


@dataclass(frozen=True)
class Kept:
    """The rows that a table goes on after."""

    file: Path
    total: float  # sum of their scores
    last: list[list[str]]  # the cells of the last few

    def check(self, anew: Sequence[Sequence[str]], tolerance: float) -> None:
        """Raise InputError unless the last rows, made anew, are the same; numbers up to a tolerance
        (of 1, or of what is larger than 1).
        """
        for old, new in zip(self.last, anew, strict=True):
            if not all(_same(*cells, tolerance) for cells in zip(old, new, strict=True)):
                raise InputError(
                    f"{self.file}: has {' '.join(old)!r} where this command gives {' '.join(new)!r}; "
                    "go on with the texts and options that it was begun with"
                )


def kept(file: Path, header: str, wanted: int, score: int) -> Kept:
    """Cut what a killed run left behind its header and its first `wanted` rows.

    `score` is the number of the column with the scores. Raises InputError for another file.
    """
    total, last = 0.0, deque[list[str]](maxlen=COMPARED)
    try:
        with file.open("rb+") as data:
            if data.readline() != header.encode():
                raise InputError(f"{file}: has other columns than {' '.join(header.split())}")
            for number in range(wanted):
                line = data.readline()
                if not line.endswith(b"\n"):
                    raise InputError(f"{file}: holds {number} pairs, not the {wanted} to be skipped")
                last.append(line.decode(errors="replace").rstrip("\n").split("\t"))
                try:
                    total += float(last[-1][score])
                except (ValueError, IndexError):
                    raise InputError(f"{file}, line {number + 2}: not a row of scores") from None
            data.truncate()
    except OSError as error:
        raise InputError(f"{file}: cannot be gone on with ({error.strerror})") from None
    return Kept(file, total, list(last))


def refuse(file: Path, header: str) -> None:
    """Raise InputError where an earlier run has left rows."""
    try:
        with file.open("rb") as data:
            goes_on = data.readline() == header.encode()
            rows = sum(line.endswith(b"\n") for line in data)
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    if rows:
        remedy = f"--skip {rows} goes on after them; else remove it" if goes_on else "remove it to start anew"
        raise InputError(f"{file}: has rows of an earlier run; {remedy}")


def _same(old: str, new: str, tolerance: float) -> bool:
    if old == new:
        return True
    try:
        a, b = float(old), float(new)
    except ValueError:
        return False
    return abs(a - b) <= tolerance * max(1.0, abs(a), abs(b))
