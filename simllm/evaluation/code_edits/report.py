"""The report of a study of code edits: page, JSON and LaTeX."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from simllm.evaluation.code_edits.study import UNCHANGED, EditStudy
from simllm.io.report import ReportKind, write_report
from simllm.io.svg_figure import BLUE, GREY, INK, Figure, style, svg_element
from simllm.io.tables import escape_latex, format_number, format_p_value, latex_table, short_label
from simllm.metrics import registry
from simllm.metrics.code.similarity import edits

KIND = ReportKind(
    "a report on code edits",
    "edits.json",
    Path(__file__).with_name("edit_report.html"),
    ("numpy", "nltk", "rapidfuzz", "sacrebleu", "tree-sitter"),
)
_MOST_EXAMPLES = 10
_MOST_PANELS = 8  # metrics in the figure


def write(study: EditStudy, folder: Path, command: str) -> None:
    """Write `report.html`, `edits.json` and `tables.tex`, and replace an earlier report."""
    page = {
        "study": study,
        "figure": _figure(study),
        "conclusions": write_conclusions(study),
        "examples": choose_examples(study),
        "lower_is_better": registry.lower_is_better,
        "cell": format_cell,
    }
    write_report(folder, KIND, command, numbers(study), page, latex=latex(study))


def numbers(study: EditStudy) -> dict[str, Any]:
    """Return all numeric results of a study as a dict that can be written as JSON."""
    return {
        "items": study.ids,
        "easy": study.easy,
        "metrics": {
            name: {
                "lower is better": registry.lower_is_better(name),
                "items": found.n,
                "systems": [asdict(one) for one in found.systems],
                "differences": [asdict(one) for one in found.differences],
                "scores": {system.name: system.scores[name].tolist() for system in study.systems},
            }
            for name, found in study.comparisons.items()
        },
        "systems": study.summaries,
        "replies": study.replies,
        "coverage": study.coverage,
        "best variants": study.best,
        **({"warnings": study.warnings} if study.warnings else {}),
    }


def latex(study: EditStudy) -> list[str]:
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
    return [
        latex_table("Means and 95\\% intervals.", "edits", header, rows),
        latex_table("Further figures.", "edit-figures", ["System", *map(escape_latex, keys)], others),
    ]


def format_cell(value: float | None) -> str:
    """Format a number for a table, with up to three decimals; "n/a" if it is None or NaN."""
    return "n/a" if value is None or math.isnan(value) else f"{value:.3f}".rstrip("0").rstrip(".")


def write_conclusions(study: EditStudy) -> list[str]:
    """Write for each metric the best system, and whether it is significantly better than the second best."""
    sentences = []
    for name, found in study.comparisons.items():
        sign = -1 if registry.lower_is_better(name) else 1
        # An unchanged source has the smallest patch, but mends nothing.
        ranked = sorted(
            (one for one in found.systems if one.name != UNCHANGED), key=lambda one: -sign * one.mean
        )
        text = f"By {name}, {ranked[0].name} is best ({format_number(ranked[0].mean)})"
        if sign < 0:  # a small patch is good only if it is right
            least = format_number(ranked[0].mean)
            text = f"{ranked[0].name} has the smallest {name} ({least}), whether it is right or wrong"
        elif len(ranked) > 1:
            names = {ranked[0].name, ranked[1].name}
            (test,) = (one for one in found.differences if {one.a, one.b} == names)
            verdict = "significantly" if test.permutation_p < 0.05 else "not significantly"
            text += (
                f", {verdict} better than {ranked[1].name} ({format_number(ranked[1].mean)}, "
                f"p {format_p_value(test.permutation_p, sign=True)})"
            )
        sentences.append(text + ".")
    return sentences


@dataclass(frozen=True)
class EditColumn:
    """A column of the HTML report: the lines that one edit adds and removes.

    Attributes:
        title: The name of the system with its score, or "reference".
        lines: Each line with its sign, such as "+x = 1" or "-x = 0"; and whether the reference has the line,
            too, which is always False in the column of the reference.
    """

    title: str
    lines: list[tuple[str, bool]]


def choose_examples(study: EditStudy) -> list[tuple[str, list[EditColumn]]]:
    """Choose up to ten items on which the systems' scores differ most; of a single system, the worst.

    The score is LEMOD (agreement of edited lines), or the study's first metric. Each item has its id, and the
    columns of the reference and of each system.
    """
    name = "lemod" if "lemod" in study.comparisons else next(iter(study.comparisons))
    systems = [system for system in study.systems if system.name != UNCHANGED]
    # A missing score counts as 0, so that items on which a system has no score are shown.
    scores = np.nan_to_num(np.stack([system.scores[name] for system in systems]))
    spread = np.ptp(scores, axis=0) if len(systems) > 1 else -scores[0]
    chosen = np.argsort(-spread, kind="stable")[:_MOST_EXAMPLES]
    return [(study.ids[i], _columns(study, study.ids[i], name, i)) for i in chosen]


def _columns(study: EditStudy, id_: str, metric: str, number: int) -> list[EditColumn]:
    """List the reference's edit and each system's first edit of the item with a number in the study."""
    columns: list[EditColumn] = []
    for system in study.systems:
        if system.name != UNCHANGED:
            found = edits(system.attempts[id_][0].example)
            if not columns:
                columns.append(EditColumn("reference", [(line, False) for line in found.reference]))
            # Indentation is left out, as a moved line is the same edit.
            known = {line[0] + line[1:].strip() for line in found.reference}
            score = format_number(float(system.scores[metric][number]))
            lines = [(line, line[0] + line[1:].strip() in known) for line in found.candidate]
            columns.append(EditColumn(f"{system.name}, {metric} {score}", lines))
    return columns


def _figure(study: EditStudy) -> str:
    """Draw each system's mean score with its 95% interval, in one panel for each metric; return the SVG."""
    shown = list(study.comparisons.items())[:_MOST_PANELS]
    with style():
        figure = Figure(figsize=(9, 0.9 + 0.28 * len(study.systems) * math.ceil(len(shown) / 2)))
        panels = figure.subplots(math.ceil(len(shown) / 2), 2, squeeze=False).ravel()
        for axes, (name, found) in zip(panels, shown, strict=False):
            means = np.array([one.mean for one in found.systems])
            # A mean without an interval has NaN ends, and gets no whisker.
            around = np.nan_to_num([[one.mean - one.low, one.high - one.mean] for one in found.systems]).T
            places = np.arange(len(means))[::-1]
            colors = [GREY if one.name == UNCHANGED else BLUE for one in found.systems]
            axes.barh(places, means, xerr=around.clip(0), color=colors, ecolor=INK, height=0.6)
            axes.set_yticks(places, [short_label(one.name) for one in found.systems])
            remark = " (lower is better)" if registry.lower_is_better(name) else ""
            axes.set_title(name + remark, fontsize=9)
            axes.spines[["top", "right"]].set_visible(False)
        for axes in panels[len(shown) :]:
            axes.set_visible(False)
        figure.tight_layout()
    return svg_element(figure)
