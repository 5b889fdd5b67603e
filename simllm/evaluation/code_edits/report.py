"""The report of a study of code edits: page, JSON and LaTeX."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
from simllm.metrics.interface import Example

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
        "metrics": [f"{name} ↓" if registry.lower_is_better(name) else name for name in study.comparisons],
        "means": format_means(study),
        "figures": format_figures(study),
        "differences": format_differences(study),
        "best": _format_best(study),
        "groups": format_groups(study),
        "agreement": format_agreement(study),
        "figure": _figure(study),
        "conclusions": write_conclusions(study),
        "examples": choose_examples(study),
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
        "groups": {
            group: {name: asdict(found) for name, found in means.items()}
            for group, means in study.groups.items()
        },
        "agreement": _agreement_numbers(study),
        "replies": study.replies,
        "coverage": study.coverage,
        "best variants": study.best,
        **({"warnings": study.warnings} if study.warnings else {}),
    }


def latex(study: EditStudy) -> list[str]:
    """Return a table of mean scores with intervals, and one of `EditStudy.summaries`."""
    header = ["System", *map(escape_latex, study.comparisons)]
    rows = [
        [escape_latex(short_label(name)), *(f"{mean} [{low}, {high}]" for mean, low, high in cells)]
        for name, cells in format_means(study).items()
    ]
    keys, figures = format_figures(study)
    others = [[escape_latex(short_label(name)), *cells] for name, cells in figures.items()]
    return [
        latex_table("Means and 95\\% intervals.", "edits", header, rows),
        latex_table("Further figures.", "edit-figures", ["System", *map(escape_latex, keys)], others),
        *_group_latex(study),
        *_agreement_latex(study),
    ]


def _group_latex(study: EditStudy) -> list[str]:
    """Return a table of means for the easy items, and one for the hard items."""
    tables = []
    for group, (metrics, rows) in format_groups(study).items():
        cells = [
            [escape_latex(short_label(name)), *(f"{mean} [{low}, {high}]" for mean, low, high in means)]
            for name, means in rows.items()
        ]
        header = ["System", *(f"{escape_latex(name)} ({n:,})" for name, n in metrics)]
        caption = f"Means and 95\\% intervals on {group} items (their number in brackets)."
        tables.append(latex_table(caption, f"edits-{group}", header, cells))
    return tables


def _agreement_latex(study: EditStudy) -> list[str]:
    """Return tables of correlations between metrics, and with exact match."""
    names = [escape_latex(name) for name in study.agreement.names]
    found = format_agreement(study)
    tables = [
        latex_table(
            f"Spearman's correlation between metrics over {over}.",
            f"edit-agreement-{key}",
            ["", *names],
            [[name, *cells] for name, cells in zip(names, rows, strict=True)],
        )
        for key, over, rows in found["matrices"]
    ]
    header = ["Metric", "Spearman", "95\\% interval", "Pearson", "equal", "other"]
    rows = [
        [escape_latex(name), rho, f"[{low}, {high}]", *rest]
        for name, (rho, low, high, *rest) in found["exact_match"].items()
    ]
    caption = (
        "Agreement with exact match, and mean scores of edits that equal their references and of others."
    )
    return [*tables, *([latex_table(caption, "edit-exact-match", header, rows)] if rows else [])]


def format_groups(
    study: EditStudy,
) -> dict[str, tuple[list[tuple[str, int]], dict[str, list[tuple[str, str, str]]]]]:
    """Format for each group of items the metrics with their numbers of items, and each system's means."""
    return {
        group: (
            [(name, found.n) for name, found in means.items()],
            {
                system.name: [
                    (format_number(one.mean), format_number(one.low), format_number(one.high))
                    for one in (found.systems[place] for found in means.values())
                ]
                for place, system in enumerate(study.systems)
            },
        )
        for group, means in study.groups.items()
    }


def format_agreement(study: EditStudy) -> dict[str, Any]:
    """Format the correlations: matrices, each with a key and what it is over; and rows for exact match."""
    found = study.agreement
    matrices = [("edits", f"{found.edits:,} edits", found.over_edits)]
    if found.over_systems is not None:
        matrices.append(("systems", f"the means of {found.systems:,} systems", found.over_systems))
    return {
        "matrices": [
            (key, over, [[format_number(value) for value in row] for row in values])
            for key, over, values in matrices
            if len(values)
        ],
        "exact_match": {
            name: [format_number(value) for value in asdict(one).values()]
            for name, one in found.exact_match.items()
        },
    }


def _agreement_numbers(study: EditStudy) -> dict[str, Any]:
    found = study.agreement
    return {
        "metrics": found.names,
        "edits": found.edits,
        "over edits": found.over_edits.tolist(),
        "systems": found.systems,
        "over systems": None if found.over_systems is None else found.over_systems.tolist(),
        "with exact match": {name: asdict(one) for name, one in found.exact_match.items()},
    }


def format_means(study: EditStudy) -> dict[str, list[tuple[str, str, str]]]:
    """Format for each system the mean by each metric, with the lower and the upper end of its interval."""
    return {
        system.name: [
            (format_number(one.mean), format_number(one.low), format_number(one.high))
            for one in (found.systems[place] for found in study.comparisons.values())
        ]
        for place, system in enumerate(study.systems)
    }


def format_figures(study: EditStudy) -> tuple[list[str], dict[str, list[str]]]:
    """Return the names of the figures in `EditStudy.summaries`, and each system's figures as texts."""
    # The first system has all keys; the baseline, which comes last, has no TOP-k.
    keys = list(next(iter(study.summaries.values())))
    return keys, {
        name: [format_cell(figures.get(key)) for key in keys] for name, figures in study.summaries.items()
    }


def format_differences(study: EditStudy) -> dict[str, list[tuple[str, ...]]]:
    """Format for each metric the pairs of systems: their names, the difference, the ends of its interval, and
    the p-values by permutation and bootstrap.
    """
    return {
        name: [
            (
                one.a, one.b, *map(format_number, (one.difference, one.low, one.high)),
                *map(format_p_value, (one.permutation_p, one.bootstrap_p)),
            )
            for one in found.differences
        ]
        for name, found in study.comparisons.items()
    }  # fmt: skip


def _format_best(study: EditStudy) -> dict[str, list[str]]:
    return {
        family: [format_number(best[name]) for name in study.comparisons]
        for family, best in study.best.items()
    }


def format_cell(value: float | None) -> str:
    """Format a number for a table, with up to three decimals; "n/a" if it is None or NaN."""
    return "n/a" if value is None or math.isnan(value) else f"{value:.3f}".rstrip("0").rstrip(".")


def write_conclusions(study: EditStudy) -> list[str]:
    """Write for each metric the best system, and whether it is significantly better than the second best."""
    sentences = []
    lower = set(filter(registry.lower_is_better, study.comparisons))
    for name, found in study.comparisons.items():
        sign = -1 if name in lower else 1
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
            verdict = "significantly" if test.p < 0.05 else "not significantly"
            text += (
                f", {verdict} better than {ranked[1].name} ({format_number(ranked[1].mean)}, "
                f"p {format_p_value(test.p, sign=True)})"
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
    shown = [
        [f"{system.name}, {name} {format_number(float(system.scores[name][i]))}" for system in systems]
        for i in chosen
    ]
    first = [[system.attempts[study.ids[i]][0].example for system in systems] for i in chosen]
    return [
        (study.ids[i], _columns(titles, examples))
        for i, titles, examples in zip(chosen, shown, first, strict=True)
    ]


def _columns(titles: Sequence[str], examples: Sequence[Example]) -> list[EditColumn]:
    """List the reference's edit of an item, and the edit of each system with its title."""
    found = [edits(example) for example in examples]
    columns = [EditColumn("reference", [(line, False) for line in found[0].reference])]
    for title, edit in zip(titles, found, strict=True):
        # Indentation is left out, as a moved line is the same edit.
        known = {line[0] + line[1:].strip() for line in edit.reference}
        lines = [(line, line[0] + line[1:].strip() in known) for line in edit.candidate]
        columns.append(EditColumn(title, lines))
    return columns


def _figure(study: EditStudy) -> str:
    """Draw each system's mean score with its 95% interval, in one panel for each metric; return the SVG."""
    shown = list(study.comparisons.items())[:_MOST_PANELS]
    lower = set(filter(registry.lower_is_better, study.comparisons))
    names = [short_label(system.name) for system in study.systems]
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
            axes.set_yticks(places, names)
            remark = " (lower is better)" if name in lower else ""
            axes.set_title(name + remark, fontsize=9)
            axes.spines[["top", "right"]].set_visible(False)
        for axes in panels[len(shown) :]:
            axes.set_visible(False)
        figure.tight_layout()
    return svg_element(figure)
