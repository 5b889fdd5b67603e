"""A study as one page of HTML that needs nothing else, as JSON, and as LaTeX tables."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from platform import platform, python_version
from typing import Any

import jinja2
from markupsafe import Markup

import simllm
from simllm.evaluation import study_figures
from simllm.evaluation.conclusions import number
from simllm.evaluation.study import Result, SetStudy, Study
from simllm.io import files, folders, tables
from simllm.io.latex import escaped

_LIBRARIES = ("numpy", "scipy", "torch", "nltk", "rouge-score", "sacrebleu", "scikit-learn")


def write(study: Study, folder: Path, command: str) -> None:
    """Write `report.html`, `study.json` and `tables.tex`; raise InputError where that is impossible."""
    facts = {"command": command, "versions": _versions(), "signatures": study.signatures}
    numbers = tables.finite({**facts, "missing": study.missing, "sets": [asdict(one) for one in study.sets]})
    with folders.replacing(folder) as partial:
        files.write(partial / "study.json", json.dumps(numbers, indent=1) + "\n")
        files.write(partial / "tables.tex", f"% {command}\n" + latex(study.sets))
        files.write(partial / "report.html", html(study, facts))


def html(study: Study, facts: dict[str, Any]) -> str:
    """The page."""
    template = Path(__file__).with_name("study_report.html").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {
        "number": number,
        "probability": _probability,
        "svg": Markup,
    }
    return environment.from_string(template).render(
        study=study, sets=study.sets, figures=study_figures, **facts
    )


def latex(sets: Sequence[SetStudy]) -> str:
    """The tables of RQ1, RQ2, RQ3 and RQ5, for the package booktabs."""
    parts = [_correlations(sets)]
    if sets[0].variants:
        parts.append(_variants(sets))
    parts += [_between(one) for one in sets if len(one.results) > 1]
    parts += [_groups(one) for one in sets if one.groups]
    return "% \\usepackage{booktabs}\n\n" + "\n".join(parts)


def _correlations(sets: Sequence[SetStudy]) -> str:
    """Metrics by sets; the best, and those that cannot be told apart from it, are bold."""
    names = list(dict.fromkeys(row.metric for one in sets for row in one.results))
    rows = []
    for name in names:
        cells = []
        for one in sets:
            found = [
                (row, rank) for row, rank in zip(one.results, one.clusters, strict=True) if row.metric == name
            ]
            cells.append(_cell(*found[0]) if found else "--")
        rows.append([escaped(name), *cells])
    header = ["Metric", *(f"{escaped(one.name)} ($n={one.pairs}$)" for one in sets)]
    caption = "Spearman's $\\rho$ and 95\\% intervals; bold: not told apart from the best."
    return _tabular(caption, "agreement", header, rows)


def _cell(row: Result, rank: int) -> str:
    rho = number(row.spearman)
    shown = f"\\textbf{{{rho}}}" if rank == 1 else rho
    return f"{shown} [{number(row.low)}, {number(row.high)}]"


def _variants(sets: Sequence[SetStudy]) -> str:
    rows = [
        [escaped(row.metric), *(_cell(one.variants[i], one.variant_clusters[i]) for one in sets)]
        for i, row in enumerate(sets[0].variants)
    ]
    caption = (
        "Spearman's $\\rho$ by pooling and similarity, 95\\% intervals; bold: not told apart from the best."
    )
    return _tabular(caption, "variants", ["Variant", *(escaped(s.name) for s in sets)], rows)


def _between(one: SetStudy) -> str:
    """The triangle below the diagonal, its columns headed by the numbers of the rows."""
    last = len(one.results) - 1
    rows = [
        [f"{i + 1} {escaped(row.metric)}", *(number(rho, 2) for rho in one.between[i][:i])]
        + [""] * (last - i)
        for i, row in enumerate(one.results)
    ]
    caption = f"Spearman's $\\rho$ between metrics on {escaped(one.name)}."
    return _tabular(caption, f"between-{one.name}", ["Metric", *map(str, range(1, last + 1))], rows)


def _groups(one: SetStudy) -> str:
    header = ["Metric", *(escaped(f"{group.label} ({group.pairs})") for group in one.groups)]
    rows = [
        [escaped(row.metric), *(number(group.spearman[row.metric]) for group in one.groups)]
        for row in one.results
    ]
    return _tabular(f"Spearman's $\\rho$ on parts of {escaped(one.name)}.", f"parts-{one.name}", header, rows)


def _tabular(caption: str, label: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    label = "tab:" + re.sub(r"[^\w/-]", "-", label)
    body = "".join("  " + " & ".join(row) + " \\\\\n" for row in rows)
    columns = "l" + "r" * (len(header) - 1)
    return (
        f"\\begin{{table}}\n\\caption{{{caption}}}\\label{{{label}}}\n\\begin{{tabular}}{{{columns}}}\n"
        f"  \\toprule\n  {' & '.join(header)} \\\\\n  \\midrule\n{body}  \\bottomrule\n"
        "\\end{tabular}\n\\end{table}\n"
    )


def _probability(value: float) -> str:
    return "< .001" if value < 0.001 else number(value)


def _versions() -> dict[str, str]:
    found = {"simllm": simllm.__version__, "python": python_version(), "system": platform()}
    return found | {name: version(name) for name in _LIBRARIES}
