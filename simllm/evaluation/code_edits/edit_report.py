"""The report of a study that compares the code edits of several systems, such as repair tools.

The report has an HTML page, a JSON file and LaTeX tables. The module `edit_latex` makes the tables.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from simllm.evaluation.code_edits.edit_latex import format_cell, latex
from simllm.evaluation.code_edits.edit_study import UNCHANGED, EditStudy
from simllm.io import output_file, tables
from simllm.io.display_names import short_label
from simllm.io.html_page import render
from simllm.io.installed_versions import versions
from simllm.io.number_format import format_number, format_p_value
from simllm.io.output_folder import OutputFolder
from simllm.io.svg_figure import BLUE, GREY, INK, Figure, style, svg_element
from simllm.metrics import registry
from simllm.metrics.code.whole_or_edited_lines import edits

_LIBRARIES = ("numpy", "nltk", "rapidfuzz", "sacrebleu", "tree-sitter")
_CONTENT = "a report on code edits"
_NAMES = ("edits.json", "tables.tex", "report.html")
_MOST_EXAMPLES = 10
_MOST_PANELS = 8  # metrics in the figure


def check(folder: Path, sources: Iterable[Path]) -> None:
    """Check that a report can be written to a folder.

    Call this before a study, so that a wrong folder is found before the computations.

    Args:
        folder: The folder of the report.
        sources: The files and folders that the study reads.

    Raises:
        InputError: The report cannot be written there; or the folder is a source, contains a source, or is
            inside a source.
    """
    OutputFolder(folder, _CONTENT).check_replaceable(_NAMES)
    OutputFolder(folder).check_apart(sources)


def write(study: EditStudy, folder: Path, command: str) -> None:
    """Write the report into a folder: `report.html`, `edits.json` and `tables.tex`.

    An earlier report is replaced. Files that simllm did not write are kept.

    Args:
        study: The results of the study.
        folder: The folder of the report.
        command: The command line that ran the study, to be shown in the report.

    Raises:
        InputError: The folder may not be replaced, for example because simllm did not write it, or a file
            cannot be written.
    """
    facts = {"command": command, "versions": versions(_LIBRARIES)}
    figures = json.dumps(tables.finite(numbers(study) | facts), indent=1)
    with OutputFolder(folder, _CONTENT).replacing() as partial:
        output_file.write(partial / "edits.json", figures + "\n")
        output_file.write(partial / "tables.tex", f"% {' '.join(command.split())}\n" + latex(study))
        output_file.write(partial / "report.html", html(study, facts))


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
    }


def html(study: EditStudy, facts: dict[str, Any]) -> str:
    """Render the report of a study of code edits as an HTML page.

    The study compares the code edits of several systems, such as repair tools.

    Args:
        study: The results of the study.
        facts: The command line and the versions of the libraries, under "command" and "versions".
    """
    return render(
        Path(__file__).with_name("edit_report.html"),
        study=study,
        figure=_figure(study),
        conclusions=write_conclusions(study),
        examples=choose_examples(study),
        lower_is_better=registry.lower_is_better,
        number=format_number,
        cell=format_cell,
        probability=format_p_value,
        **facts,
    )


def write_conclusions(study: EditStudy) -> list[str]:
    """Write a sentence for each metric, which names the best system and its score.

    The sentence also says whether the best system is significantly better than the second best. For a metric
    whose lower values are better, the sentence only names the system with the lowest value.
    """
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
    """A column of the HTML report: the lines that one edit of a piece of code adds and removes.

    One column shows the reference, which is the expected edit. Each other column shows the edit by a system,
    such as a repair tool.

    Attributes:
        title: The name of the system with its score, or "reference".
        lines: The lines of the edit, each as a pair. The first element is the line with its sign, such as
            "+x = 1" or "-x = 0". The second is True if the reference has the same line. In the column of the
            reference, the second element is always False.
    """

    title: str
    lines: list[tuple[str, bool]]


def choose_examples(study: EditStudy) -> list[tuple[str, list[EditColumn]]]:
    """Choose up to ten items for the report: those on which the scores of the systems differ most.

    The score is LEMOD (agreement of edited lines), or the study's first metric if LEMOD is not among its
    metrics. With a single system, the items with the lowest scores are chosen.

    Returns:
        For each item, its id, and its edits as columns of the report: first the reference's edit, then the
        edit of each system.
    """
    name = "lemod" if "lemod" in study.comparisons else next(iter(study.comparisons))
    systems = [system for system in study.systems if system.name != UNCHANGED]
    scores = np.nan_to_num(np.stack([system.scores[name] for system in systems]))
    spread = np.ptp(scores, axis=0) if len(systems) > 1 else -scores[0]
    chosen = np.argsort(-spread, kind="stable")[:_MOST_EXAMPLES]
    return [(study.ids[i], _columns(study, study.ids[i], name, i)) for i in chosen]


def _columns(study: EditStudy, id_: str, metric: str, number: int) -> list[EditColumn]:
    """List the edits of one piece of code, each as a column of the HTML report.

    The first column is the reference: the edit with which the systems' edits are compared. Then comes a
    column for each system except the baseline. If a system has several candidates for the item (the piece of
    code), the first candidate is used.

    Args:
        study: The results of the study.
        id_: The id of the item.
        metric: The name of the metric whose score is shown with each system.
        number: The index of the item in the study. It is used to look up the scores of the item.
    """
    columns: list[EditColumn] = []
    for system in study.systems:
        if system.name != UNCHANGED:
            found = edits(system.attempts[id_][0].example)
            if not columns:
                columns.append(EditColumn("reference", [(line, False) for line in found.reference]))
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
