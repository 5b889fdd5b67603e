"""LaTeX tables of a study of metrics: how well their scores agree with human ratings and with each other."""

from __future__ import annotations

from collections.abc import Sequence

from simllm.evaluation.metric_study.correlation_by_group import largest_groups
from simllm.evaluation.metric_study.study_results import MetricResult, SetStudy
from simllm.io.display_names import short_label
from simllm.io.latex import escape_latex, latex_table
from simllm.io.number_format import format_number

_MOST_PARTS = 12  # largest number of columns in a LaTeX table


def latex(sets: Sequence[SetStudy]) -> str:
    """Return LaTeX tables of how well the scores of metrics agree with human ratings and with each other.

    The tables need the LaTeX package booktabs.

    Args:
        sets: The results on each set of text pairs with human ratings.
    """
    parts = [_correlations(sets)]
    if sets[0].variants:
        parts.append(_variants(sets))
    parts += [_between(one) for one in sets if len(one.results) > 1]
    parts += [_groups(one) for one in sets if one.groups]
    return "% \\usepackage{booktabs}\n\n" + "\n".join(parts)


def _correlations(sets: Sequence[SetStudy]) -> str:
    """Return a LaTeX table of correlations with human ratings: a row for each metric, a column for each set.

    A cell shows Spearman's rho and its 95% interval. In each column, the best correlation is bold. The
    correlations that are not significantly worse are bold, too.

    Args:
        sets: The results on each set of text pairs with human ratings.
    """
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
    """Format a metric's Spearman's rho and its 95% interval as a cell of a LaTeX table: ".512 [.480, .544]".

    Args:
        row: The result of the metric.
        rank: The rank of the metric among all metrics. Rho is bold if the rank is 1.
    """
    rho = format_number(row.spearman)
    shown = f"\\textbf{{{rho}}}" if rank == 1 else rho
    return f"{shown} [{format_number(row.low)}, {format_number(row.high)}]"


def _variants(sets: Sequence[SetStudy]) -> str:
    """Return a LaTeX table: how well each variant of the learned metric correlates with human ratings.

    A variant is a combination of pooling and similarity. There is one row for each variant, and one column
    for each set of text pairs with human ratings.

    Args:
        sets: The results on each set of text pairs with human ratings.
    """
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
    """Return a LaTeX table of the rank correlations between metrics.

    A cell shows Spearman's rho between the scores of two metrics on the same text pairs. Only the lower
    triangle is filled. A row begins with the number and the name of its metric; a column has only the number
    of its metric as a header.

    Args:
        study: The results on one set of text pairs with human ratings.
    """
    last = len(study.results) - 1
    rows = [
        [f"{i + 1} {_name(row.metric)}", *(format_number(rho, 2) for rho in study.between[i][:i])]
        + [""] * (last - i)
        for i, row in enumerate(study.results)
    ]
    caption = f"Spearman's $\\rho$ between metrics on {_name(study.name)}."
    return latex_table(caption, f"between-{study.name}", ["Metric", *map(str, range(1, last + 1))], rows)


def _groups(study: SetStudy) -> str:
    """Return a LaTeX table of the metrics' correlations with human ratings in groups of text pairs.

    The table has a row for each metric, and a column for each group. A cell shows Spearman's rho. The text
    pairs are grouped in three ways: by programming language, by the system that wrote the candidate, and by
    the length of the reference. Only the largest groups get columns.

    Args:
        study: The results on one set of text pairs with human ratings.
    """
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
