"""LaTeX tables of a study, for the LaTeX package booktabs."""

from __future__ import annotations

from collections.abc import Sequence

from simllm.evaluation.metric_study.correlation_by_group import largest_groups
from simllm.evaluation.metric_study.study_results import MetricResult, SetStudy
from simllm.io.display_names import short_label
from simllm.io.latex import escape_latex, latex_table
from simllm.io.number_format import format_number

_MOST_PARTS = 12  # largest number of columns in a LaTeX table


def latex(sets: Sequence[SetStudy]) -> str:
    """Return all tables of a study: agreement with people, variants, between metrics, groups."""
    parts = [_correlations(sets)]
    # The variants are the same in all sets.
    if sets[0].variants:
        parts.append(_variants(sets))
    parts += [_between(one) for one in sets if len(one.results) > 1]
    parts += [_groups(one) for one in sets if one.groups]
    return "% \\usepackage{booktabs}\n\n" + "\n".join(parts)


def _correlations(sets: Sequence[SetStudy]) -> str:
    """Return a table of Spearman's rho with intervals; bold: not significantly worse than the best."""
    # A metric may be missing in some sets.
    names = list(dict.fromkeys(row.metric for one in sets for row in one.results))
    rows = []
    for name in names:
        cells = []
        for one in sets:
            ranked = [
                (row, rank) for row, rank in zip(one.results, one.clusters, strict=True) if row.metric == name
            ]
            cells.append(_cell(*ranked[0]) if ranked else "--")
        rows.append([_name(name), *cells])
    header = ["Metric", *(f"{_name(one.name)} ($n={one.pairs}$)" for one in sets)]
    caption = "Spearman's $\\rho$ and 95\\% intervals; bold: not significantly worse than the best."
    return latex_table(caption, "agreement", header, rows)


def _cell(row: MetricResult, rank: int) -> str:
    """Format rho with its interval, such as ".512 [.480, .544]"; bold with rank 1."""
    rho = format_number(row.spearman)
    shown = f"\\textbf{{{rho}}}" if rank == 1 else rho
    return f"{shown} [{format_number(row.low)}, {format_number(row.high)}]"


def _variants(sets: Sequence[SetStudy]) -> str:
    """Return a table of Spearman's rho of the learned metric's variants."""
    rows = [
        [_name(row.metric), *(_cell(one.variants[i], one.variant_clusters[i]) for one in sets)]
        for i, row in enumerate(sets[0].variants)
    ]
    caption = (
        "Spearman's $\\rho$ by pooling and similarity, 95\\% intervals; "
        "bold: not significantly worse than the best."
    )
    return latex_table(caption, "variants", ["Variant", *(_name(s.name) for s in sets)], rows)


def _between(study: SetStudy) -> str:
    """Return a table of Spearman's rho between metrics; only the lower triangle is filled."""
    last = len(study.results) - 1
    rows = [
        [f"{i + 1} {_name(row.metric)}", *(format_number(rho, 2) for rho in study.between[i][:i])]
        + [""] * (last - i)
        for i, row in enumerate(study.results)
    ]
    caption = f"Spearman's $\\rho$ between metrics on {_name(study.name)}."
    return latex_table(caption, f"between-{study.name}", ["Metric", *map(str, range(1, last + 1))], rows)


def _groups(study: SetStudy) -> str:
    """Return a table of Spearman's rho in the largest groups of pairs."""
    parts = largest_groups(study.groups, _MOST_PARTS)
    header = ["Metric", *(f"{_name(part.label)} ({part.pairs})" for part in parts)]
    rows = [
        [_name(row.metric), *(format_number(part.spearman[row.metric]) for part in parts)]
        for row in study.results
    ]
    return latex_table(
        f"Spearman's $\\rho$ on parts of {_name(study.name)}.", f"parts-{study.name}", header, rows
    )


def _name(text: str) -> str:
    return escape_latex(short_label(text))
