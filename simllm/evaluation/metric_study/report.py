"""The report of a study of metrics: page, JSON and LaTeX, and conclusions as English sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from simllm.array_types import Floats
from simllm.evaluation.metric_study import figures
from simllm.evaluation.metric_study.results import MetricResult, SetStudy, Study, largest_groups
from simllm.io.report import ReportKind, write_report
from simllm.io.tables import escape_latex, format_number, latex_table, short_label
from simllm.metrics import registry
from simllm.stats.agreement import RaterAgreement
from simllm.stats.correlation import LEVEL

KIND = ReportKind(
    "a report on metrics",
    "study.json",
    Path(__file__).with_name("study_report.html"),
    ("numpy", "scipy", "torch", "nltk", "rouge-score", "sacrebleu", "scikit-learn"),
)
_MOST_RATERS = 10  # largest number of raters that are listed one by one
_MOST_PARTS = 12  # largest number of columns in a LaTeX table
_FEW = 30  # pairs; with fewer, bootstrap intervals are too narrow
_PAPER_LEVEL = 0.001  # the level of significance in the SIMLLM paper


def write(study: Study, folder: Path, command: str, messages: Sequence[str] = ()) -> None:
    """Write `report.html`, `study.json` and `tables.tex`, and replace an earlier report.

    `messages` are warnings that change how the results are read.
    """
    numbers = {"missing": study.missing, "sets": [asdict(one) for one in study.sets]}
    facts = {
        "signatures": study.signatures,
        "warnings": list(messages),
        "negated": [name for name in study.signatures if registry.lower_is_better(name)],
    }
    page = {"study": study, "sets": study.sets, "figures": figures, "one_by_one": _one_by_one}
    write_report(folder, KIND, command, numbers, page, facts, latex(study.sets))


def _one_by_one(values: Sequence[float]) -> str:
    """Format the correlation of each rater with the others; of more than 10 raters, only the range."""
    defined = sorted(value for value in values if not math.isnan(value))
    # A study with hundreds of raters would fill the page.
    if len(values) <= _MOST_RATERS or not defined:
        return ", ".join(map(format_number, values[:_MOST_RATERS]))
    return f"{format_number(defined[0])} to {format_number(defined[-1])}"


def write_conclusions(
    results: Sequence[MetricResult], p: Floats, pairs: int, people: RaterAgreement | None
) -> list[str]:
    """Write the conclusions on one set of rated pairs.

    `results` are those of m metrics, the best first. `p` are (m, m) p-values after Holm's correction of the
    differences between two metrics. `people` is None if the agreement is unknown, for example for a single
    rater.
    """
    best = results[0]
    sentences = [*_best(results), *_differences(results, p, pairs), *_significance(results)]
    if pairs < _FEW:
        sentences.append(f"{pairs} pairs are few: bootstrap intervals of fewer than {_FEW} are too narrow.")
    return sentences + _other_measures(results, best) + (_ceiling(people) if people else [])


def _best(results: Sequence[MetricResult]) -> list[str]:
    """Write a sentence about the best metric's correlation, which may be negative or due to chance."""
    best = results[0]
    interval = (
        "no interval (all resamples are equal)"
        if math.isnan(best.low)
        else f"95% interval {format_number(best.low)} to {format_number(best.high)}"
    )
    correlation = f"Spearman {format_number(best.spearman)}, {interval}"
    name = short_label(best.metric)
    if best.spearman <= 0:
        return [
            "No metric agrees with people: no correlation is above zero. "
            f"The highest is {name}'s: {correlation}."
        ]
    # "not <" also holds for NaN, which must not count as significant.
    if not best.p_value < LEVEL:
        return [
            "No metric is shown to agree with people: even the highest correlation may be chance "
            f"({name}, {correlation}; p = {format_number(best.p_value)}, permutation test)."
        ]
    return [f"{name} agrees {'best ' if len(results) > 1 else ''}with people: {correlation}."]


def _differences(results: Sequence[MetricResult], p: Floats, pairs: int) -> list[str]:
    """Write which metrics are significantly worse than the best, and which are not; `p` are corrected, (m,
    m).
    """
    best, *others = results
    comparisons = len(results) * (len(results) - 1) // 2
    test = f"permutation test at {LEVEL}, Holm's correction for {comparisons} comparisons"
    # Row 0 of `p` has the comparisons of the best metric.
    peers = [row for row, p_value in zip(others, p[0, 1:], strict=True) if not p_value < LEVEL]
    worse = [row.metric for row, p_value in zip(others, p[0, 1:], strict=True) if p_value < LEVEL]
    sentences = []
    if peers:
        listed = _join([f"{short_label(row.metric)} ({format_number(row.spearman)})" for row in peers])
        widest = format_number(best.spearman - peers[-1].spearman)
        sentences.append(
            f"{pairs:,} pairs cannot separate {short_label(best.metric)} from {listed}: "
            f"here a lead of {widest} may be chance ({test})."
        )
    if worse:
        names = _join(list(map(short_label, worse)))
        sentences.append(f"{short_label(best.metric)} is significantly better than {names} ({test}).")
    return sentences


def _significance(results: Sequence[MetricResult]) -> list[str]:
    """Write which correlations are not significant, and which are significantly negative."""
    weak = [short_label(row.metric) for row in results if not row.p_value < _PAPER_LEVEL]
    negative = [short_label(row.metric) for row in results if row.spearman < 0 and row.p_value < LEVEL]
    sentences = [
        f"Not significant at p < {_PAPER_LEVEL}: {_join(weak)}."
        if weak
        else f"Every correlation is significant at p < {_PAPER_LEVEL}."
    ]
    if negative:
        sentences.append(f"Significantly below zero: {_join(negative)}.")
    return sentences


def _ceiling(people: RaterAgreement) -> list[str]:
    """Write how well the raters agree, and the ceiling; no sentence if the agreement is undefined."""
    single = [rho for rho in people.one_against_rest if not math.isnan(rho)]
    if not single or math.isnan(people.split_half):
        return []
    raters = (
        f"One of the {people.raters} raters correlates with the mean of the others at "
        f"{format_number(min(single))} to {format_number(max(single))}, one half of the raters with the "
        f"other half at {format_number(people.split_half)}: "
    )
    if math.isnan(people.ceiling):
        return [raters + "the raters do not agree, so that no metric can be expected to agree with them."]
    return [
        raters + f"a metric can be expected to reach {format_number(people.ceiling)} against the mean of "
        "all raters (Spearman and Brown)."
    ]


def _other_measures(results: Sequence[MetricResult], best: MetricResult) -> list[str]:
    """Write which metrics are the best by other measures than Spearman's rho; no sentence if `best` is."""
    measures = {
        "Kendall's tau-b": "kendall",
        "Pearson's r": "pearson",
        "pairwise accuracy": "pairwise_accuracy",
    }
    leads = {
        name: max(results, key=lambda row: getattr(row, field))
        for name, field in measures.items()
        # max() with NaN depends on the order.
        if not any(math.isnan(getattr(row, field)) for row in results)
    }
    others = [f"{short_label(row.metric)} by {name}" for name, row in leads.items() if row is not best]
    return [f"Other metrics are best by other measures: {_join(others)}."] if others else []


def _join(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def latex(sets: Sequence[SetStudy]) -> list[str]:
    """Return all tables of a study: agreement with people, variants, between metrics, groups."""
    parts = [_correlations(sets)]
    # The variants are the same in all sets.
    if sets[0].variants:
        parts.append(_variants(sets))
    parts += [_between(one) for one in sets if len(one.results) > 1]
    parts += [_groups(one) for one in sets if one.groups]
    return parts


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
