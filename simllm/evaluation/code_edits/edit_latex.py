"""LaTeX tables of a study of code edits."""

from __future__ import annotations

import math

from simllm.evaluation.code_edits.edit_study import EditStudy
from simllm.io.display_names import short_label
from simllm.io.latex import escape_latex, latex_table
from simllm.io.number_format import format_number


def latex(study: EditStudy) -> str:
    """Return a table of mean scores with intervals, and one of `EditStudy.summaries`."""
    header = ["System", *map(escape_latex, study.comparisons)]
    rows = []
    for place, system in enumerate(study.systems):
        found = [comparison.systems[place] for comparison in study.comparisons.values()]
        cells = [
            f"{format_number(one.mean)} [{format_number(one.low)}, {format_number(one.high)}]"
            for one in found
        ]
        rows.append([escape_latex(short_label(system.name)), *cells])
    # The first system has all keys; the baseline, which comes last, has no TOP-k.
    keys = list(next(iter(study.summaries.values())))
    others = [
        [escape_latex(short_label(name)), *(format_cell(figures.get(key)) for key in keys)]
        for name, figures in study.summaries.items()
    ]
    return "% \\usepackage{booktabs}\n\n" + "\n".join(
        [
            latex_table("Means and 95\\% intervals.", "edits", header, rows),
            latex_table("Further figures.", "edit-figures", ["System", *map(escape_latex, keys)], others),
        ]
    )


def format_cell(value: float | None) -> str:
    """Format a number for a table, with up to three decimals; "n/a" if it is None or NaN."""
    return "n/a" if value is None or math.isnan(value) else f"{value:.3f}".rstrip("0").rstrip(".")
