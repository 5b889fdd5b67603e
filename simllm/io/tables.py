"""Writing of tables as aligned text, tab-separated values (TSV) or JSON."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simllm.io import output_file
from simllm.text_cleaning import encodable

FORMATS = ("text", "json", "tsv")
_GAP = "  "
Rows = Sequence[Sequence[Any]]
Summary = Callable[[], dict[str, Any]]


@dataclass(frozen=True)
class Table:
    """A table with a summary.

    Attributes:
        columns: The names of the c columns.
        rows: Rows of c cells.
        summary: Facts about all rows: a dict from a name, such as "mean", to a value.
    """

    columns: Sequence[str]
    rows: Rows
    summary: dict[str, Any]


def write(table: Table, format_: str | None, output: Path | None) -> None:
    """Write a table to a file or to standard output.

    Args:
        table: The table.
        format_: "text", "json" or "tsv"; None means "text" on a terminal and "tsv" otherwise.
        output: The file, which is written atomically; None means standard output.
    """
    write_chunks(table.columns, [table.rows], lambda: table.summary, format_for(format_, output), output)


def write_chunks(
    columns: Sequence[str], chunks: Iterable[Rows], summary: Summary, format_: str, output: Path | None
) -> None:
    """Write a long table, some rows at a time.

    On standard output, the rows appear as soon as they are computed.

    Args:
        columns: The names of the c columns.
        chunks: The rows in chunks; each chunk is a list of rows with c cells.
        summary: A function without arguments, which is called after the last chunk, when all rows are known.
            It returns facts about all rows: a dict from a name, such as "mean", to a value.
        format_: "text", "json" or "tsv".
        output: The file, which is written atomically; None means standard output.
    """
    show(_WRITERS[format_](columns, chunks, summary), output)


def show(text: str | Iterable[str], output: Path | None) -> None:
    """Write text to a file or to standard output.

    Args:
        text: The text, or an iterable of its parts. On standard output, each part appears as soon as the
            iterable yields it.
        output: The file, which is written atomically; None means standard output.
    """
    if output is not None:
        output_file.write(output, text)
        return
    for piece in [text] if isinstance(text, str) else text:
        sys.stdout.write(piece)
        sys.stdout.flush()


def format_for(format_: str | None, output: Path | None) -> str:
    """Choose the format of a table.

    Args:
        format_: The format that the user chose; None if the user chose none.
        output: The output file; None means standard output.

    Returns:
        The user's choice. Without one, "text" if the table is written to a terminal, otherwise "tsv".
    """
    return format_ or ("text" if output is None and sys.stdout.isatty() else "tsv")


def _tsv(columns: Sequence[str], chunks: Iterable[Rows], summary: Summary) -> Iterator[str]:
    """Yield a table as TSV (tab-separated values), chunk by chunk. Floats have six significant digits.

    Args:
        columns: The names of the columns, which are the first line.
        chunks: The rows in chunks; each chunk is a list of rows.
        summary: Not used, because a TSV table has no place for a summary.
    """
    head: Rows = [columns]
    for rows in chunks:
        yield "".join("\t".join(_cell(value, exact=True) for value in row) + "\n" for row in [*head, *rows])
        head = []


def _json(columns: Sequence[str], chunks: Iterable[Rows], summary: Summary) -> Iterator[str]:
    """Yield a table as the text of one JSON object, chunk by chunk. Each row is on a line of its own.

    Args:
        columns: The names of the columns.
        chunks: The rows in chunks; each chunk is a list of rows.
        summary: A function that is called after the last chunk. It returns facts about all rows, which follow
            the rows in the JSON object.
    """
    before = '{"rows": [\n'
    for rows in chunks:
        yield before + ",\n".join(json.dumps(finite(dict(zip(columns, row, strict=True)))) for row in rows)
        before = ",\n"
    end = "".join(f",\n{json.dumps(key)}: {json.dumps(value)}" for key, value in finite(summary()).items())
    yield f"\n]{end}}}\n"


def _text(columns: Sequence[str], chunks: Iterable[Rows], summary: Summary) -> Iterator[str]:
    """Yield a table as aligned text, chunk by chunk, and then the summary.

    The rows of the first chunk decide how wide the columns are. In later chunks, longer cells are cut.

    Args:
        columns: The names of the columns.
        chunks: The rows in chunks; each chunk is a list of rows.
        summary: A function that is called after the last chunk. It returns facts about all rows, such as the
            mean, by name.
    """
    fitting: list[int] = []
    for rows in chunks:
        if not fitting:
            fitting = widths([columns, *rows])
            yield header(columns, fitting)
        yield lines(rows, fitting)
    yield footer(summary())


_WRITERS = {"text": _text, "json": _json, "tsv": _tsv}


def finite(value: Any) -> Any:
    """Replace NaN and infinities in nested lists and dicts by None, because JSON has only finite numbers."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def header(columns: Sequence[str], widths: list[int]) -> str:
    """Format the names of columns as a line of text, with a horizontal line below.

    Args:
        columns: The names.
        widths: The widths of the columns in characters.
    """
    return lines([columns], widths) + _GAP.join("─" * width for width in widths) + "\n"


def lines(rows: Rows, widths: list[int]) -> str:
    """Format rows as aligned text, one row per line; `widths` are the columns' widths in characters."""
    return "".join(_line([_cell(value) for value in row], widths) + "\n" for row in rows)


def footer(summary: dict[str, Any]) -> str:
    """Format a table's summary as text: an empty line, and then a line for each entry or item of a list."""
    shown = [(k, v) for k, value in summary.items() for v in (value if isinstance(value, list) else [value])]
    return "\n" + "".join(f"{on_one_line(key)}: {_cell(value)}\n" for key, value in shown)


def _line(row: list[str], widths: list[int]) -> str:
    """Join cells into an aligned line of text; cells longer than their column's width are cut."""
    fitted = [
        cell if len(cell) <= width else cell[: width - 1] + "…"
        for cell, width in zip(row, widths, strict=True)
    ]
    return _GAP.join(cell.ljust(width) for cell, width in zip(fitted, widths, strict=True)).rstrip()


def widths(rows: Rows) -> list[int]:
    """Choose the widths of a table's columns, in characters, so that the table fits the terminal.

    Each column gets the width of its longest cell. If the table is then too wide for the terminal, the widest
    column loses one character, again and again, until the table fits or no column is wider than 8 characters.
    """
    widths = [max(len(_cell(value)) for value in column) for column in zip(*rows, strict=True)]
    space = shutil.get_terminal_size((100, 24)).columns - len(_GAP) * (len(widths) - 1)
    while sum(widths) > space and max(widths) > 8:
        widths[widths.index(max(widths))] -= 1
    return widths


def _cell(value: Any, exact: bool = False) -> str:
    """Format a table cell as one line of text; a missing value (None or NaN) is written as "n/a".

    Args:
        value: The value.
        exact: Whether floats get six significant digits. Otherwise they get four decimals, or exponential
            notation if they are closer to 0 than 0.0001.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "n/a"
    if isinstance(value, float):
        if exact:
            return f"{value:.6g}"
        return f"{value:.4f}" if value == 0 or abs(value) >= 1e-4 else f"{value:.1e}"
    return on_one_line(str(value))


def on_one_line(text: str) -> str:
    """Put a text on one line, and remove control characters, which could disturb the terminal."""
    return " ".join("".join(c if c.isprintable() else " " for c in encodable(text)).split())
