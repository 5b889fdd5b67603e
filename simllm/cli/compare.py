"""`simllm compare`: which of several systems is better, and is it more than chance?"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

from simllm.errors import InputError
from simllm.io import files, latex, tables

if TYPE_CHECKING:
    from simllm.analysis.comparison import Comparison

FORMATS = ("text", "json", "latex")
HELP = "compare systems, with intervals and significance tests"
EXAMPLES = """examples:
  simllm compare -r references.txt -c a.txt b.txt c.txt
  simllm compare -r first.txt second.txt -c a.txt b.txt --over mean -f latex -o table.tex
"""


def add_options(compare: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    compare.add_argument(
        "-r", "--references", nargs="+", type=Path, required=True, metavar="FILE",
        help="references, one a line; several files are several references of each line",
    )  # fmt: skip
    compare.add_argument(
        "-c", "--candidates", nargs="+", type=Path, required=True, metavar="FILE",
        help="candidates, one a line, a file for each system",
    )  # fmt: skip
    compare.add_argument("--over", default="max", metavar="NAME", help="several references: max or mean")


def run(options: argparse.Namespace) -> None:
    """Compare, and show."""
    given = [*options.candidates, *options.references]
    files.check_output(options.output, given, options.overwrite)
    if sum(map(files.is_stdin, given)) > 1:
        raise InputError("-: standard input can be one of the files only")
    texts = {file: [line for _, line in files.lines(file)] for file in given}
    first = options.references[0]
    for file, read in texts.items():
        if len(read) != len(texts[first]):
            raise InputError(f"{file} has {len(read)} lines but {first} has {len(texts[first])}")
    names = [file.stem for file in options.candidates]
    if len(set(names)) != len(names):  # two folders, one name
        names = [str(file) for file in options.candidates]
    from simllm.analysis.comparison import compare
    from simllm.metric import SimLLM

    systems: dict[str, Sequence[str]] = {
        name: texts[file] for name, file in zip(names, options.candidates, strict=True)
    }
    found = compare(
        SimLLM(options.model), systems, [texts[file] for file in options.references], options.over
    )
    shown = {"text": _text, "json": _json, "latex": _latex}[options.format or "text"](found)
    tables.show(shown, options.output)


def _json(found: Comparison) -> str:
    return json.dumps(tables.finite({**asdict(found), "wins": found.wins.tolist()}), indent=2) + "\n"


def _text(found: Comparison) -> str:
    names = [system.name for system in found.systems]
    parts = [
        (("system", "mean", "95% low", "high"), [tuple(asdict(system).values()) for system in found.systems]),
        (
            ("a", "b", "difference", "95% low", "high", "bootstrap p", "permutation p"),
            [tuple(asdict(difference).values()) for difference in found.differences],
        ),
        (("wins over", *names), [(name, *row) for name, row in zip(names, found.wins.tolist(), strict=True)]),
    ]
    shown = []
    for columns, rows in parts:
        cells = [["n/a" if isinstance(cell, float) and isnan(cell) else cell for cell in row] for row in rows]
        widths = tables.widths([columns, *cells])
        shown.append(tables.header(columns, widths) + tables.lines(cells, widths))
    correction = {"items": found.n, "p": "two-sided, Holm-corrected", "signature": found.signature}
    return "\n".join(shown) + tables.footer(correction)


def _latex(found: Comparison) -> str:
    """Means with intervals; a star marks the best where it beats all others at 5%, by both tests."""
    best = max(found.systems, key=lambda system: system.mean)
    own = [d for d in found.differences if best.name in (d.a, d.b)]
    star = "*" if all(max(d.bootstrap_p, d.permutation_p) < 0.05 for d in own) else ""
    rows = [
        f"{latex.escaped(s.name)} & ${s.mean:.3f}{'^{' + star + '}' if star and s is best else ''}$ "
        f"& {'--' if isnan(s.low) else f'$[{s.low:.3f}, {s.high:.3f}]$'} \\\\"
        for s in found.systems
    ]
    head = ["\\begin{tabular}{lrr}", "\\toprule", "System & SIMLLM & 95\\% interval \\\\", "\\midrule"]
    note = f"% n = {found.n}; *: p < 0.05 against every other (paired, Holm); {found.signature}"
    return "\n".join([*head, *rows, "\\bottomrule", "\\end{tabular}", note]) + "\n"
