"""The report of a study: an HTML page, a JSON file, and LaTeX tables."""

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
    """Check before a study that its report can be written to a folder, apart from the sources."""
    OutputFolder(folder, _CONTENT).check_replaceable(_NAMES)
    OutputFolder(folder).check_apart(sources)


def write(study: Study, folder: Path, command: str, messages: Sequence[str] = ()) -> None:
    """Write the report into a folder: `report.html`, `study.json` and `tables.tex`.

    An earlier report is replaced, but files that simllm did not write are kept. `command` is the command line
    that ran the study; `messages` are warnings that change how the results are read.
    """
    facts = {
        "command": command,
        "versions": versions(_LIBRARIES),
        "signatures": study.signatures,
        "warnings": list(messages),
        "negated": [name for name in study.signatures if registry.lower_is_better(name)],
    }
    # JSON has no NaN.
    numbers = tables.finite({**facts, "missing": study.missing, "sets": [asdict(one) for one in study.sets]})
    with OutputFolder(folder, _CONTENT).replacing() as partial:
        output_file.write(partial / "study.json", json.dumps(numbers, indent=1) + "\n")
        # A line break in the command would end the comment of LaTeX.
        output_file.write(partial / "tables.tex", f"% {' '.join(command.split())}\n" + latex(study.sets))
        output_file.write(partial / "report.html", html(study, facts))


def html(study: Study, facts: dict[str, Any]) -> str:
    """Render the report; `facts` are command, versions, signatures, warnings, and the names of negated
    metrics.
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
    """Format the correlation of each rater with the others; of more than 10 raters, only the range."""
    defined = sorted(value for value in values if not math.isnan(value))
    # A study with hundreds of raters would fill the page.
    if len(values) <= _MOST_RATERS or not defined:
        return ", ".join(map(format_number, values[:_MOST_RATERS]))
    return f"{format_number(defined[0])} to {format_number(defined[-1])}"
