"""The report of a study of classifiers: a self-contained HTML page, JSON, and LaTeX tables."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.evaluation.classifiers.classifier_conclusions import DASH, title, write_conclusions
from simllm.evaluation.classifiers.classifier_figures import draw_calibration, draw_curves
from simllm.evaluation.classifiers.classifier_latex import write_latex
from simllm.evaluation.classifiers.ecser_protocol import ClassifierStudy, main_split
from simllm.evaluation.classifiers.study_warnings import LEAST_ROWS, find_warnings
from simllm.io import output_file, tables
from simllm.io.html_page import render
from simllm.io.installed_versions import versions
from simllm.io.number_format import format_number, format_p_value
from simllm.io.output_folder import OutputFolder
from simllm.stats.calibration_error import Bin

_LIBRARIES = ("numpy", "pandas", "scikit-learn", "scipy", "statsmodels")
_CONTENT = "a report on classifiers"
_NAMES = ("classifiers.json", "tables.tex", "report.html", "predictions.jsonl")
# The keys of facts that a reader needs to repeat a study (steps S2 to S5), and descriptions of the facts.
FACTS = {
    "model": "the model and its version",
    "prompts": "the prompts, word for word",
    "temperature": "the temperature and other settings of generation",
    "split": "how the data were split, and why",
    "metrics": "which metrics were chosen, and why",
    "reasons": "why these classifiers were compared",
}


def check(folder: Path, sources: Iterable[Path]) -> None:
    """Check before the computations that a report can be written to a folder, apart from the sources."""
    OutputFolder(folder, _CONTENT).check_replaceable(_NAMES)
    OutputFolder(folder).check_apart(sources)


def read_about(file: Path | None) -> dict[str, str]:
    """Read facts about a study from a TOML file whose keys are keys of `FACTS`; none without a file."""
    if file is None:
        return {}
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: not TOML ({error})") from None
    if unknown := sorted(found.keys() - FACTS.keys()):
        raise InputError(f"{file}: unknown key {unknown[0]}; known: {', '.join(FACTS)}")
    return {name: _shown(value) for name, value in found.items()}


def _shown(value: Any) -> str:
    """Convert a TOML value to text; the elements of a list are joined with commas."""
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)


def write(
    study: ClassifierStudy,
    folder: Path,
    command: str,
    about: Mapping[str, str],
    keep_predictions: bool = False,
) -> None:
    """Write `report.html`, `classifiers.json` and `tables.tex`, and on request `predictions.jsonl`.

    An earlier report is replaced, other files are kept, and a folder that simllm did not write is an
    `InputError`. The report shows the command line and `about`, the facts of `read_about`.
    """
    facts = {"command": command, "versions": versions(_LIBRARIES), "about": dict(about)}
    figures = json.dumps(tables.finite(numbers(study) | facts), indent=1)
    with OutputFolder(folder, _CONTENT).replacing() as partial:
        output_file.write(partial / "classifiers.json", figures + "\n")
        output_file.write(partial / "tables.tex", f"% {' '.join(command.split())}\n" + write_latex(study))
        output_file.write(partial / "report.html", html(study, facts))
        if keep_predictions:
            output_file.write(partial / "predictions.jsonl", study.predictions.to_json_lines())


def numbers(study: ClassifierStudy) -> dict[str, Any]:
    """Return all numeric results of a study as a dict that can be written as JSON."""
    spelling = study.predictions.spelling
    return {
        "warnings": find_warnings(study),
        "labels": study.labels,
        "invented": study.invented,
        "spelling": {
            "respelled": {label: {"as": name, "n": n} for label, (name, n) in spelling.respelled.items()},
            "apart": spelling.apart,
            "missing": spelling.missing,
        },
        "classifiers": {name: _plain(asdict(found)) for name, found in study.classifiers.items()},
        "tests": [asdict(answer) for answer in study.tests],
        "selected": study.selected,
        "select_by": study.select_by,
        "leaks": {"items": study.leaks, "named": study.leaked},
    }


def _plain(value: Any) -> Any:
    """Replace each `Bin` within nested dicts and lists by a dict."""
    if isinstance(value, Bin):
        return {"bin": value.number, "n": value.size, "confidence": value.probability, "rate": value.share}
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list) else value


def html(study: ClassifierStudy, facts: dict[str, Any]) -> str:
    """Render the report; `facts` has the keys "command", "versions" (of libraries) and "about"."""
    return render(
        Path(__file__).with_name("classifier_report.html"),
        study=study,
        metrics=metric_names(study),
        main_split=main_split,
        least_rows=LEAST_ROWS,
        conclusions=write_conclusions(study),
        calibration=draw_calibration(study),
        curves=draw_curves(study),
        known_facts=FACTS,
        cell=_cell,
        title=title,
        short=lambda value: DASH if value is None else format_number(value),
        probability=lambda p: DASH if p is None else format_p_value(p),
        **facts,
    )


def metric_names(study: ClassifierStudy) -> list[str]:
    """Return the names of all computed metrics, in the order of the report's tables."""
    splits = [split for found in study.classifiers.values() for split in found.splits.values()]
    return list(dict.fromkeys(name for split in splits for name in split.metrics))


def _cell(value: float | None) -> str:
    # Templates pass counts, too, and costs far below 1.
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return DASH
    return f"{value:,.3f}".rstrip("0").rstrip(".") if abs(value) >= 0.01 or not value else f"{value:.2g}"
