"""Results as tables (text, JSON, TSV and LaTeX), and the formatting of names, counts and numbers."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from simllm.io import output_file
from simllm.text_cleaning import encodable


def printable(name: str | os.PathLike[str]) -> str:
    """Return a file name with U+FFFD for bytes that are not UTF-8, and escaped control characters."""
    text = os.fsencode(name).decode("utf-8", "replace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def format_number(value: float, digits: int = 3) -> str:
    """Format a correlation or a p-value in the style of papers: ".123" for 0.1234, and "n/a" for NaN."""
    return "n/a" if math.isnan(value) else re.sub(r"^(-?)0\.", r"\1.", f"{value:.{digits}f}")


def format_count(count: int, noun: str) -> str:
    """Format a count with its noun, such as "1 pair" and "2,000 pairs"; the plural must end in -s."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def format_p_value(value: float, sign: bool = False) -> str:
    """Format a p-value, such as ".012", "< .001" or "> .999"; with `sign`, "= .012" instead of ".012"."""
    if value < 0.001:
        return "< .001"
    if value > 0.999:
        return "> .999"
    return f"{'= ' if sign else ''}{format_number(value)}"


_MOST_CHARACTERS = 40  # in a figure or in the header of a column


def label(text: str) -> str:
    """Put a name on one line without control characters; "(blank)" if nothing is left."""
    if not text.isprintable():  # neither are the surrogates that UTF-8 cannot encode
        # Format characters (Cf) join emoji and mark the direction of writing; they change no line.
        shown = (c if c.isprintable() or unicodedata.category(c) == "Cf" else " " for c in encodable(text))
        text = "".join(shown)
    return " ".join(text.split()) or "(blank)"


def short_label(text: str) -> str:
    """Make a label of at most 40 characters; a longer name is cut and ends in "…"."""
    shown = label(text)
    return shown if len(shown) <= _MOST_CHARACTERS else shown[: _MOST_CHARACTERS - 1] + "…"


def list_some(names: Iterable[object], most: int, more: str = ", …") -> str:
    """List the first names as short labels with commas; `more` stands for those after the first `most`."""
    first = [short_label(str(name)) for name in islice(names, most + 1)]
    return ", ".join(first[:most]) + (more if len(first) > most else "")


FORMATS = ("text", "json", "tsv")
_GAP = "  "
Rows = Sequence[Sequence[Any]]
Summary = Callable[[], dict[str, Any]]


@dataclass(frozen=True)
class Table:
    """A table with a summary: facts about all rows, by a name such as "mean"."""

    columns: Sequence[str]
    rows: Rows
    summary: dict[str, Any]


def write(table: Table, format_: str | None, output: Path | None) -> None:
    """Write a table; without a format, as `format_for` chooses."""
    write_chunks(table.columns, [table.rows], lambda: table.summary, format_for(format_, output), output)


def write_chunks(
    columns: Sequence[str], chunks: Iterable[Rows], summary: Summary, format_: str, output: Path | None
) -> None:
    """Write a long table, some rows at a time; on standard output, they appear as soon as they are computed.

    `summary` is called after the last chunk, when all rows are known.
    """
    show(_WRITERS[format_](columns, chunks, summary), output)


def show(text: str | Iterable[str], output: Path | None) -> None:
    """Write a text atomically to a file, or its parts one by one to standard output."""
    if output is not None:
        output_file.write(output, text)
        return
    for piece in [text] if isinstance(text, str) else text:
        sys.stdout.write(piece)
        sys.stdout.flush()


def format_for(format_: str | None, output: Path | None) -> str:
    """Return the format that the user chose; without one, "text" on a terminal and "tsv" elsewhere."""
    return format_ or ("text" if output is None and sys.stdout.isatty() else "tsv")


def _tsv(columns: Sequence[str], chunks: Iterable[Rows], summary: Summary) -> Iterator[str]:
    """Yield a table as TSV, which has no place for a summary."""
    head: Rows = [columns]
    for rows in chunks:
        yield "".join("\t".join(_cell(value, exact=True) for value in row) + "\n" for row in [*head, *rows])
        head = []


def _json(columns: Sequence[str], chunks: Iterable[Rows], summary: Summary) -> Iterator[str]:
    """Yield a table as the text of one JSON object, each row on a line of its own."""
    before = '{"rows": [\n'
    for rows in chunks:
        yield before + ",\n".join(json.dumps(finite(dict(zip(columns, row, strict=True)))) for row in rows)
        before = ",\n"
    # After the rows, because the summary is only known then.
    end = "".join(f",\n{json.dumps(key)}: {json.dumps(value)}" for key, value in finite(summary()).items())
    yield f"\n]{end}}}\n"


def _text(columns: Sequence[str], chunks: Iterable[Rows], summary: Summary) -> Iterator[str]:
    """Yield a table as aligned text, and then the summary."""
    fitting: list[int] = []
    for rows in chunks:
        # The first chunk decides; later cells that are longer are cut, because rows already printed stay.
        if not fitting:
            fitting = widths([columns, *rows])
            yield header(columns, fitting)
        yield lines(rows, fitting)
    yield footer(summary())


_WRITERS = {"text": _text, "json": _json, "tsv": _tsv}


def finite(value: Any) -> Any:
    """Replace NaN and infinities in nested lists and dicts by None: JSON has only finite numbers."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def header(columns: Sequence[str], widths: list[int]) -> str:
    """Format the names of columns, with a horizontal line below; widths are in characters."""
    return lines([columns], widths) + _GAP.join("─" * width for width in widths) + "\n"


def lines(rows: Rows, widths: list[int]) -> str:
    """Format rows as aligned text, one row per line; widths are in characters."""
    return "".join(_line([_cell(value) for value in row], widths) + "\n" for row in rows)


def footer(summary: dict[str, Any]) -> str:
    """Format a summary: an empty line, and then a line for each entry or item of a list."""
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

    Until it fits, the widest column loses a character, unless no column is wider than 8.
    """
    widths = [max(len(_cell(value)) for value in column) for column in zip(*rows, strict=True)]
    space = shutil.get_terminal_size((100, 24)).columns - len(_GAP) * (len(widths) - 1)
    while sum(widths) > space and max(widths) > 8:
        widths[widths.index(max(widths))] -= 1
    return widths


def _cell(value: Any, exact: bool = False) -> str:
    """Format a cell as one line, None and NaN as "n/a"; `exact` gives floats six significant digits."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "n/a"
    if isinstance(value, float):
        if exact:
            return f"{value:.6g}"
        # A p-value of 0.00001 would look like 0.
        return f"{value:.4f}" if value == 0 or abs(value) >= 1e-4 else f"{value:.1e}"
    return on_one_line(str(value))


def on_one_line(text: str) -> str:
    """Put a text on one line, and remove control characters, which could disturb the terminal."""
    if not text.isprintable():  # neither are the surrogates that UTF-8 cannot encode
        text = "".join(c if c.isprintable() else " " for c in encodable(text))
    return " ".join(text.split())


_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_SPECIAL |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}  # wrong in old fonts
_SPECIAL |= {character: f"\\{character}" for character in "&%$#_{}"}


def escape_latex(text: str) -> str:
    """Escape what is special in LaTeX, remove control characters, and put the text on one line."""
    line = re.sub(r"[\x00-\x1f\x7f-\x9f]", "", " ".join(text.split()))
    return "".join(_SPECIAL.get(character, character) for character in line)


def latex_table(
    caption: str,
    label: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    alignment: str | None = None,
    small: bool = False,
) -> str:
    """Return a LaTeX table for the package booktabs; caption, header and cells are LaTeX.

    `label` has no prefix "tab:". By default, `alignment` is left for the first column and right for all
    others.
    """
    # A label may have been the name of a file, and \ref allows few characters.
    label = "tab:" + re.sub(r"[^\w/-]", "-", label)
    body = "".join("  " + " & ".join(row) + " \\\\\n" for row in rows)
    size = "\\small\n" if small else ""
    columns = alignment or "l" + "r" * (len(header) - 1)
    return (
        f"\\begin{{table}}\n\\caption{{{caption}}}\\label{{{label}}}\n{size}\\begin{{tabular}}{{{columns}}}\n"
        f"  \\toprule\n  {' & '.join(header)} \\\\\n  \\midrule\n{body}  \\bottomrule\n"
        "\\end{tabular}\n\\end{table}\n"
    )
