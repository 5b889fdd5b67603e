"""Shows results: a tidy table to a person, TSV or JSON to a program."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simllm.io import files
from simllm.text import encodable

FORMATS = ("text", "json", "tsv")
_GAP = "  "


@dataclass(frozen=True)
class Table:
    """Rows under columns, if there are any, and what holds for all of them."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    summary: dict[str, Any]


def write(table: Table, format_: str | None, output: Path | None) -> None:
    """Write to `output`, whole or not at all, or else to stdout."""
    text = {"text": _text, "json": _json, "tsv": _tsv}[format_for(format_, output)](table)
    if output is None:
        sys.stdout.write(text)
    else:
        files.write(output, text)


def format_for(format_: str | None, output: Path | None) -> str:
    """The format; where none is asked for, a terminal gets text and everything else TSV."""
    return format_ or ("text" if output is None and sys.stdout.isatty() else "tsv")


def _json(table: Table) -> str:
    rows = [finite(dict(zip(table.columns, row, strict=True))) for row in table.rows]
    found = {**finite(table.summary), **({"rows": rows} if table.columns else {})}
    return json.dumps(found, indent=2) + "\n"


def finite(value: Any) -> Any:
    """The same with None for NaN and infinities, which have no JSON form."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _tsv(table: Table) -> str:
    return tsv([table.columns, *table.rows])


def tsv(rows: Sequence[Sequence[Any]]) -> str:
    """The rows as TSV, numbers to six significant digits."""
    return "".join("\t".join(_cell(value, exact=True) for value in row) + "\n" for row in rows)


def split(rows: Sequence[Sequence[Any]]) -> list[list[str]]:
    """The cells of the rows as they stand in TSV."""
    return [line.split("\t") for line in tsv(rows).split("\n")[:-1]]


def _text(table: Table) -> str:
    fitting = widths([table.columns, *table.rows])
    return header(table.columns, fitting) + lines(table.rows, fitting) + footer(table.summary)


def header(columns: Sequence[str], widths: list[int]) -> str:
    """The names of the columns, underlined."""
    return lines([columns], widths) + _GAP.join("─" * width for width in widths) + "\n"


def lines(rows: Sequence[Sequence[Any]], widths: list[int]) -> str:
    """The rows, one a line."""
    return "".join(_line([_cell(value) for value in row], widths) + "\n" for row in rows)


def footer(summary: dict[str, Any]) -> str:
    """What holds for all rows."""
    return "\n" + "".join(f"{key}: {_cell(value)}\n" for key, value in summary.items())


def _line(row: list[str], widths: list[int]) -> str:
    fitted = [
        cell if len(cell) <= width else cell[: width - 1] + "…"
        for cell, width in zip(row, widths, strict=True)
    ]
    return _GAP.join(cell.ljust(width) for cell, width in zip(fitted, widths, strict=True)).rstrip()


def widths(rows: Sequence[Sequence[Any]]) -> list[int]:
    """Column widths that fit the terminal; the widest columns give way first."""
    widths = [max(len(_cell(value)) for value in column) for column in zip(*rows, strict=True)]
    room = shutil.get_terminal_size((100, 24)).columns - len(_GAP) * (len(widths) - 1)
    while sum(widths) > room and max(widths) > 8:
        widths[widths.index(max(widths))] -= 1
    return widths


def _cell(value: Any, exact: bool = False) -> str:
    """One cell on one line; numbers to four digits, or, exact, to six significant ones."""
    if isinstance(value, float):
        if exact:
            return f"{value:.6g}"
        return f"{value:.4f}" if value == 0 or abs(value) >= 1e-4 else f"{value:.1e}"
    return on_one_line(str(value))


def on_one_line(text: str) -> str:
    """Return `text` without line ends, and without control characters, which would steer a terminal."""
    return " ".join("".join(c if c.isprintable() else " " for c in encodable(text)).split())
