"""The report of a study of metrics: an HTML page, a JSON file, and LaTeX tables from `study_latex`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from simllm.evaluation.metric_study import study_figures
from simllm.evaluation.metric_study.study_latex import latex
from simllm.evaluation.metric_study.study_results import Study
from simllm.io import output_file, tables
from simllm.io.html_page import render
from simllm.io.installed_versions import versions
from simllm.io.number_format import format_number, format_p_value
from simllm.io.output_folder import OutputFolder
from simllm.metrics import registry

_LIBRARIES = ("numpy", "scipy", "torch", "nltk", "rouge-score", "sacrebleu", "scikit-learn")
_CONTENT = "a report on metrics"
_NAMES = ("study.json", "tables.tex", "report.html")
_MOST_RATERS = 10  # largest number of raters that are listed one by one


def check(folder: Path, sources: Iterable[Path]) -> None:
    """Check that a report can be written to a folder.

    Call this before a study, so that a wrong folder is found before the computations.

    Args:
        folder: The folder of the report.
        sources: The files and folders that the study reads.

    Raises:
        InputError: The report cannot be written there, or the folder contains or lies in a source.
    """
    OutputFolder(folder, _CONTENT).check_replaceable(_NAMES)
    OutputFolder(folder).check_apart(sources)


def write(study: Study, folder: Path, command: str, messages: Sequence[str] = ()) -> None:
    """Write the report of a study of metrics: `report.html`, `study.json` and `tables.tex`.

    An earlier report is replaced. Files that simllm did not write are kept.

    Args:
        study: The results of the study.
        folder: The folder of the report.
        command: The command line that ran the study, to be shown in the report.
        messages: Warnings that change how the results are read.

    Raises:
        InputError: The folder may not be replaced, for example because simllm did not write it, or a file
            cannot be written.
    """
    facts = {
        "command": command,
        "versions": versions(_LIBRARIES),
        "signatures": study.signatures,
        "warnings": list(messages),
        "negated": [name for name in study.signatures if registry.lower_is_better(name)],
    }
    numbers = tables.finite({**facts, "missing": study.missing, "sets": [asdict(one) for one in study.sets]})
    with OutputFolder(folder, _CONTENT).replacing() as partial:
        output_file.write(partial / "study.json", json.dumps(numbers, indent=1) + "\n")
        output_file.write(partial / "tables.tex", f"% {' '.join(command.split())}\n" + latex(study.sets))
        output_file.write(partial / "report.html", html(study, facts))


def html(study: Study, facts: dict[str, Any]) -> str:
    """Render the report of a study of metrics as an HTML page.

    Args:
        study: The results of the study.
        facts: A dict with these keys:

            - "command": The command line that ran the study.
            - "versions": The versions of the libraries.
            - "signatures": A dict from the name of each metric to a text with everything that can change its
              scores.
            - "warnings": What changes how the results are read.
            - "negated": The names of the metrics whose scores were negated, because lower scores are better.
    """
    return render(
        Path(__file__).with_name("study_report.html"),
        study=study,
        sets=study.sets,
        figures=study_figures,
        number=format_number,
        probability=format_p_value,
        one_by_one=_one_by_one,
        **facts,
    )


def _one_by_one(values: Sequence[float]) -> str:
    """Format the correlation of each rater with the other raters as text.

    The text lists all correlations, such as ".612, .655, .701". If there are more than 10 raters, it gives
    only the range, such as ".512 to .701".

    Args:
        values: For each rater, the correlation with the mean ratings by the other raters.
    """
    defined = sorted(value for value in values if not math.isnan(value))
    if len(values) <= _MOST_RATERS or not defined:
        return ", ".join(map(format_number, values[:_MOST_RATERS]))
    return f"{format_number(defined[0])} to {format_number(defined[-1])}"
