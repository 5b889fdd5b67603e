"""LaTeX tables of a study of classifiers."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.evaluation.classifiers.conclusions import (
    DASH,
    LEAST_ROWS,
    find_warnings,
    format_estimate,
    title,
    write_conclusions,
)
from simllm.evaluation.classifiers.figures import draw_calibration, draw_curves
from simllm.evaluation.classifiers.metrics import Estimate, Performance
from simllm.evaluation.classifiers.predictions import SPLITS
from simllm.evaluation.classifiers.protocol import ClassifierStudy, main_split
from simllm.evaluation.classifiers.significance import Answer
from simllm.io import output_file, tables
from simllm.io.html_page import render
from simllm.io.output_folder import OutputFolder
from simllm.io.packages import versions
from simllm.io.reading import whole_text
from simllm.io.tables import escape_latex, format_number, format_p_value, latex_table
from simllm.stats.calibration import Bin

_WITH_INTERVALS = 2  # largest number of classifiers whose columns fit on a page with intervals
_TESTS = {
    "mcnemar-exact": "McNemar, exact",
    "mcnemar-chi2": "McNemar",
    "cochran-q": "Cochran's Q",
    "chi2": "chi-squared",
    "chi2-permutation": "chi-squared, permuted",
    "fisher": "Fisher, exact",
    "delong": "DeLong",
    "paired-permutation": "permutation",
    "wilcoxon": "Wilcoxon",
    "friedman-nemenyi": "Friedman, Nemenyi",
    "welch-t": "Welch",
    "mann-whitney": "Mann-Whitney",
}


def write_latex(study: ClassifierStudy) -> str:
    """Return a table of metrics for each split, and a table of tests for each split or pair of splits."""
    parts = ["% \\usepackage{booktabs}\n"]
    for split in SPLITS:
        found = {name: one.splits[split] for name, one in study.classifiers.items() if split in one.splits}
        if found:
            parts.append(_metrics_table(found, split, study.labels))
    for split in dict.fromkeys(answer.split for answer in study.tests):
        rows = [_test_row(answer) for answer in study.tests if answer.split == split]
        caption = f"Significance tests on {escape_latex(split)} data; an unparsed output is wrong."
        header = ["Question", "Test", "$p$", "$p$ (Holm)", "Effect [95\\% interval]"]
        label = f"classifier-tests-{split}"
        parts.append(latex_table(caption, label, header, rows, alignment="p{3.3cm}p{1.7cm}rrr", small=True))
    return "\n".join(parts)


def _metrics_table(found: Mapping[str, Performance], split: str, labels: Sequence[str]) -> str:
    """Return a LaTeX table with a row for each metric and a column for each classifier."""
    # A table has one column for each classifier, and intervals are wide.
    show = _value if len(found) > _WITH_INTERVALS else _with_interval
    rows = [["Rows", *(f"{one.n:,}" for one in found.values())]]
    rows.append(["Unparsed outputs", *(f"{one.unparsed:,}" for one in found.values())])
    for metric in dict.fromkeys(name for one in found.values() for name in one.metrics):
        rows.append([_capital(metric), *(show(one.metrics.get(metric)) for one in found.values())])
    for metric in ("accuracy", "mcc"):
        strict = [Estimate(one.strict.get(metric)) for one in found.values()]
        rows.append([f"{_capital(metric)}, unparsed wrong", *map(_value, strict)])
    caption = f"Performance on {split} data"
    if len(labels) == 2:
        caption += f" (positive class: {escape_latex(labels[0])})"
    caption += ", without unparsed outputs" + (", with 95\\% intervals." if show is _with_interval else ".")
    return latex_table(
        caption, f"classifiers-{split}", ["Metric", *map(escape_latex, found)], rows, small=True
    )


def _capital(metric: str) -> str:
    name = title(metric)
    return escape_latex(name[0].upper() + name[1:])


def _value(found: Estimate | None) -> str:
    return "--" if found is None or found.value is None else format_number(found.value)


def _with_interval(found: Estimate | None) -> str:
    return format_estimate(found).replace(DASH, "--")


def _test_row(answer: Answer) -> Sequence[str]:
    p, p_holm = ("--" if p is None else escape_latex(format_p_value(p)) for p in (answer.p, answer.p_holm))
    # A comparison by an interval alone has no test to name.
    test = _TESTS.get(answer.test, answer.test) if answer.p is not None else "--"
    effect = _with_interval(Estimate(answer.effect, answer.low, answer.high))
    return [escape_latex(answer.question), escape_latex(test), p, p_holm, effect]


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
    text = whole_text(file)
    try:
        found = tomllib.loads(text)
    except RecursionError:
        raise InputError(f"{file}: TOML that is nested too deeply") from None
    except ValueError as error:  # TOML that is wrong, or a number with more digits than Python reads
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
