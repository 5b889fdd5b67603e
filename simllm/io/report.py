"""Reports of studies: a folder with a page, all figures as JSON, and tables for LaTeX."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simllm.io import output_file, tables
from simllm.io.html_page import render
from simllm.io.output_folder import OutputFolder
from simllm.io.packages import versions

PAGE, TABLES = "report.html", "tables.tex"


@dataclass(frozen=True)
class ReportKind:
    """The common facts of all reports on one kind of study.

    Attributes:
        content: What the folder holds, such as "a report on code edits"; for its marker.
        figures: The name of the JSON file.
        template: The jinja2 template of the page.
        libraries: The packages that can change the figures; the report tells their versions.
        more: The names of further files that a report may have.
        keeps_records: Whether the folder also has records of the study, such as recorded answers. Then a
            report replaces only the files of an earlier one, instead of the folder.
    """

    content: str
    figures: str
    template: Path
    libraries: Sequence[str]
    more: Sequence[str] = ()
    keeps_records: bool = False


def check_report(folder: Path, kind: ReportKind, sources: Iterable[Path]) -> None:
    """Check before a study that its report can be written to a folder, apart from the sources."""
    if kind.keeps_records:
        OutputFolder(folder, kind.content).check()
    else:
        OutputFolder(folder, kind.content).check_replaceable((kind.figures, TABLES, PAGE, *kind.more))
    OutputFolder(folder).check_apart(sources)


def write_report(
    folder: Path,
    kind: ReportKind,
    command: str,
    figures: Mapping[str, Any],
    page: Mapping[str, Any],
    facts: Mapping[str, Any] | None = None,
    latex: Sequence[str] = (),
    files: Mapping[str, Iterable[str]] | None = None,
) -> None:
    """Write a report, and replace an earlier one; a folder that simllm did not write is an `InputError`.

    `figures` go to the JSON file, and `page` to the template. Both get `facts`, the command line, and the
    versions of libraries. `latex` are tables; `files` are further files by name.
    """
    facts = {"command": command, "versions": versions(kind.libraries), **(facts or {})}
    contents: dict[str, Iterable[str]] = {
        kind.figures: json.dumps(tables.finite({**figures, **facts}), indent=1) + "\n",
        PAGE: render(kind.template, **page, **facts),
    }
    if latex:
        # A line break in the command would end the comment of LaTeX.
        head = f"% {' '.join(command.split())}\n% \\usepackage{{booktabs}}\n\n"
        contents[TABLES] = head + "\n".join(latex)
    contents |= files or {}
    with _place(folder, kind, contents) as place:
        for name, content in contents.items():
            output_file.write(place / name, content)


@contextlib.contextmanager
def _place(folder: Path, kind: ReportKind, names: Iterable[str]) -> Iterator[Path]:
    """Yield the folder into which the files of a report are to be written."""
    output = OutputFolder(folder, kind.content)
    if not kind.keeps_records:
        with output.replacing() as partial:
            yield partial
        return
    output.own()
    output.reserve(names)
    yield folder
