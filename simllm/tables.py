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

from simllm import files
from simllm.text import encodable

FORMATS = ("text", "json", "tsv")
_GAP = "  "


@dataclass(frozen=True)
class Table:
    """Rows under columns, and what holds for all of them."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    summary: dict[str, Any]


def write(table: Table, format_: str | None, output: Path | None) -> None:
    """Write to `output`, whole or not at all, or else to stdout.

    Without a format, a terminal gets text and everything else TSV.
    """
    if format_ is None:
        format_ = "text" if output is None and sys.stdout.isatty() else "tsv"
    text = {"text": _text, "json": _json, "tsv": _tsv}[format_](table)
    if output is None:
        sys.stdout.write(text)
    else:
        files.write(output, text)


def _json(table: Table) -> str:
    rows = [dict(zip(table.columns, map(_finite, row), strict=True)) for row in table.rows]
    summary = {key: _finite(value) for key, value in table.summary.items()}
    return json.dumps({**summary, "rows": rows}, indent=2) + "\n"


def _finite(value: Any) -> Any:
    """NaN has no JSON form."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _tsv(table: Table) -> str:
    rows = [table.columns, *table.rows]
    return "".join("\t".join(_cell(value, exact=True) for value in row) + "\n" for row in rows)


def _text(table: Table) -> str:
    cells = [[_cell(value) for value in row] for row in (table.columns, *table.rows)]
    widths = _widths(cells)
    lines = [_line(row, widths) for row in cells]
    lines.insert(1, _GAP.join("─" * width for width in widths))
    summary = (f"{key}: {_cell(value)}" for key, value in table.summary.items())
    return "\n".join([*lines, "", *summary]) + "\n"


def _line(row: list[str], widths: list[int]) -> str:
    fitted = [
        cell if len(cell) <= width else cell[: width - 1] + "…"
        for cell, width in zip(row, widths, strict=True)
    ]
    return _GAP.join(cell.ljust(width) for cell, width in zip(fitted, widths, strict=True)).rstrip()


def _widths(cells: list[list[str]]) -> list[int]:
    """Column widths that fit the terminal; the widest columns give way first."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
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
    # Control characters would steer the terminal that shows them.
    shown = "".join(c if c.isprintable() else " " for c in encodable(str(value)))
    return " ".join(shown.split())
