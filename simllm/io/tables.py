"""Writing of tables as text, TSV or JSON."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simllm.io import files
from simllm.text_cleaning import encodable

FORMATS = ("text", "json", "tsv")
_GAP = "  "
Rows = Sequence[Sequence[Any]]
Summary = Callable[[], dict[str, Any]]


@dataclass(frozen=True)
class Table:
    """Rows under columns, and a summary of all rows."""

    columns: Sequence[str]
    rows: Rows
    summary: dict[str, Any]


def write(table: Table, format_: str | None, output: Path | None) -> None:
    """Write a table to a file (atomically) or, if `output` is None, to standard output."""
    write_chunks(table.columns, [table.rows], lambda: table.summary, format_for(format_, output), output)


def write_chunks(
    columns: Sequence[str], chunks: Iterable[Rows], summary: Summary, format_: str, output: Path | None
) -> None:
    """Write a long table in chunks; on standard output each chunk appears at once.

    Args:
        columns: The names of the columns.
        chunks: The rows, some at a time.
        summary: Returns the summary of all rows; called after the last chunk.
        format_: One of `FORMATS`.
        output: A file, which is written atomically; None is standard output.
    """
    show(_WRITERS[format_](columns, chunks, summary), output)


def show(text: str | Iterable[str], output: Path | None) -> None:
    """Write text to a file (atomically) or, if `output` is None, piece by piece to standard output."""
    if output is not None:
        files.write(output, text)
        return
    for piece in [text] if isinstance(text, str) else text:
        sys.stdout.write(piece)
        sys.stdout.flush()


def format_for(format_: str | None, output: Path | None) -> str:
    """Return the given format, or the default: text on a terminal, TSV otherwise."""
    return format_ or ("text" if output is None and sys.stdout.isatty() else "tsv")


def _tsv(columns: Sequence[str], chunks: Iterable[Rows], summary: Summary) -> Iterator[str]:
    """Yield TSV without the summary; numbers have six significant digits."""
    head: Rows = [columns]
    for rows in chunks:
        yield "".join("\t".join(_cell(value, exact=True) for value in row) + "\n" for row in [*head, *rows])
        head = []


def _json(columns: Sequence[str], chunks: Iterable[Rows], summary: Summary) -> Iterator[str]:
    """Yield one JSON object: the rows, one per line, and then the summary."""
    before = '{"rows": [\n'
    for rows in chunks:
        yield before + ",\n".join(json.dumps(finite(dict(zip(columns, row, strict=True)))) for row in rows)
        before = ",\n"
    end = "".join(f",\n{json.dumps(key)}: {json.dumps(value)}" for key, value in finite(summary()).items())
    yield f"\n]{end}}}\n"


def _text(columns: Sequence[str], chunks: Iterable[Rows], summary: Summary) -> Iterator[str]:
    """Yield a table that fits the terminal, then the summary; the first rows decide the widths."""
    fitting: list[int] = []
    for rows in chunks:
        if not fitting:
            fitting = widths([columns, *rows])
            yield header(columns, fitting)
        yield lines(rows, fitting)
    yield footer(summary())


_WRITERS = {"text": _text, "json": _json, "tsv": _tsv}


def finite(value: Any) -> Any:
    """Replace NaN and infinities in nested values by None, because JSON has only finite numbers."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def header(columns: Sequence[str], widths: list[int]) -> str:
    """Return the names of the columns, underlined."""
    return lines([columns], widths) + _GAP.join("─" * width for width in widths) + "\n"


def lines(rows: Rows, widths: list[int]) -> str:
    """Return the rows, one per line."""
    return "".join(_line([_cell(value) for value in row], widths) + "\n" for row in rows)


def footer(summary: dict[str, Any]) -> str:
    """Return the summary, one entry per line, after an empty line."""
    return "\n" + "".join(f"{key}: {_cell(value)}\n" for key, value in summary.items())


def _line(row: list[str], widths: list[int]) -> str:
    """Return cells as one line; long cells are cut to the column width."""
    fitted = [
        cell if len(cell) <= width else cell[: width - 1] + "…"
        for cell, width in zip(row, widths, strict=True)
    ]
    return _GAP.join(cell.ljust(width) for cell, width in zip(fitted, widths, strict=True)).rstrip()


def widths(rows: Rows) -> list[int]:
    """Return column widths that fit the terminal; the widest columns are shortened first."""
    widths = [max(len(_cell(value)) for value in column) for column in zip(*rows, strict=True)]
    space = shutil.get_terminal_size((100, 24)).columns - len(_GAP) * (len(widths) - 1)
    while sum(widths) > space and max(widths) > 8:
        widths[widths.index(max(widths))] -= 1
    return widths


def _cell(value: Any, exact: bool = False) -> str:
    """Format a cell on one line; numbers have four decimals or, if `exact`, six significant digits."""
    if isinstance(value, float):
        if exact:
            return f"{value:.6g}"
        return f"{value:.4f}" if value == 0 or abs(value) >= 1e-4 else f"{value:.1e}"
    return on_one_line(str(value))


def on_one_line(text: str) -> str:
    """Return `text` on one line, without control characters, which could change the terminal."""
    return " ".join("".join(c if c.isprintable() else " " for c in encodable(text)).split())
