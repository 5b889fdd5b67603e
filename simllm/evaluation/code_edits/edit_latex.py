"""LaTeX tables of a study that compares the code edits of several systems, such as repair tools."""

from __future__ import annotations

import math

from simllm.evaluation.code_edits.edit_study import EditStudy
from simllm.io.display_names import short_label
from simllm.io.latex import escape_latex, latex_table
from simllm.io.number_format import format_number


def latex(study: EditStudy) -> str:
    """Return two LaTeX tables with a row for each system.

    The first table has the mean scores with their intervals. The second has the numbers in
    `EditStudy.summaries`, such as pass rates.
    """
    header = ["System", *map(escape_latex, study.comparisons)]
    rows = []
    for place, system in enumerate(study.systems):
        found = [comparison.systems[place] for comparison in study.comparisons.values()]
        cells = [
            f"{format_number(one.mean)} [{format_number(one.low)}, {format_number(one.high)}]"
            for one in found
        ]
        rows.append([escape_latex(short_label(system.name)), *cells])
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
