"""Sentences that a study's numbers support."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from numpy.typing import NDArray

from simllm.evaluation.labels import short
from simllm.stats.rater_agreement import Agreement
from simllm.stats.significance import LEVEL

if TYPE_CHECKING:
    import numpy as np

    from simllm.evaluation.study_results import Result

_FEW = 30  # pairs
_PAPER_LEVEL = 0.001  # SIMLLM calls a correlation significant below it


def number(value: float, digits: int = 3) -> str:
    """Format a correlation or a p-value as papers do, without the zero before the point."""
    return "n/a" if math.isnan(value) else re.sub(r"^(-?)0\.", r"\1.", f"{value:.{digits}f}")


def probability(value: float) -> str:
    """Format a p-value; small ones as "< .001"."""
    return "< .001" if value < 0.001 else number(value)


def in_words(
    results: Sequence[Result],
    p: NDArray[np.float64],
    pairs: int,
    people: Agreement | None,
) -> list[str]:
    """Say which metric agrees best, which ones the data cannot separate from it, and what the ceiling is.

    Args:
        results: the metrics, sorted by Spearman's rho, the best first.
        p: (m, m) p-values that two metrics agree equally well with people, corrected by Holm's method.
        pairs: number of rated pairs.
        people: agreement between the raters, if there are several.
    """
    best = results[0]
    said = [*_lead(results), *_separated(results, p, pairs), *_significant(results)]
    if pairs < _FEW:
        said.append(f"{pairs} pairs are few: intervals of a bootstrap over fewer than {_FEW} are too narrow.")
    return said + _otherwise(results, best) + (_ceiling(people) if people else [])


def _lead(results: Sequence[Result]) -> list[str]:
    best = results[0]
    interval = (
        "no interval (all resamples are alike)"
        if math.isnan(best.low)
        else f"95% interval {number(best.low)} to {number(best.high)}"
    )
    found = f"Spearman {number(best.spearman)}, {interval}"
    name = short(best.metric)
    if best.spearman <= 0:
        return [
            f"No metric agrees with people: no correlation is above zero. The highest is {name}'s: {found}."
        ]
    if not best.p_value < LEVEL:
        return [
            "No metric is shown to agree with people: even the highest correlation may be chance "
            f"({name}, {found}; p = {number(best.p_value)}, permutation test)."
        ]
    return [f"{name} agrees {'best ' if len(results) > 1 else ''}with people: {found}."]


def _separated(results: Sequence[Result], p: NDArray[np.float64], pairs: int) -> list[str]:
    """Which metrics are worse than the best, and which may not be."""
    best, *others = results
    compared = len(results) * (len(results) - 1) // 2
    test = f"permutation test at {LEVEL}, Holm's correction for {compared} comparisons"
    peers = [row for row, of in zip(others, p[0, 1:], strict=True) if not of < LEVEL]
    worse = [row.metric for row, of in zip(others, p[0, 1:], strict=True) if of < LEVEL]
    said = []
    if peers:
        listed = _listed([f"{short(row.metric)} ({number(row.spearman)})" for row in peers])
        widest = number(best.spearman - peers[-1].spearman)
        said.append(
            f"{pairs:,} pairs cannot separate {short(best.metric)} from {listed}: "
            f"here a lead of {widest} may be chance ({test})."
        )
    if worse:
        said.append(
            f"{short(best.metric)} is significantly better than {_listed(list(map(short, worse)))} ({test})."
        )
    return said


def _significant(results: Sequence[Result]) -> list[str]:
    weak = [short(row.metric) for row in results if not row.p_value < _PAPER_LEVEL]
    against = [short(row.metric) for row in results if row.spearman < 0 and row.p_value < LEVEL]
    said = [
        f"Not significant at p < {_PAPER_LEVEL}: {_listed(weak)}."
        if weak
        else f"Every correlation is significant at p < {_PAPER_LEVEL}."
    ]
    if against:
        said.append(f"Scores fall where ratings rise: {_listed(against)}.")
    return said


def _ceiling(people: Agreement) -> list[str]:
    single = [rho for rho in people.one_against_rest if not math.isnan(rho)]
    if not single or math.isnan(people.split_half):
        return []
    raters = (
        f"One of the {people.raters} raters correlates with the mean of the others at "
        f"{number(min(single))} to {number(max(single))}, half of them with the other half at "
        f"{number(people.split_half)}: "
    )
    if math.isnan(people.ceiling):
        return [raters + "the raters do not agree, so that no metric can be expected to agree with them."]
    return [
        raters + f"against the mean of all a metric can be expected to reach {number(people.ceiling)} "
        "(Spearman and Brown)."
    ]


def _otherwise(results: Sequence[Result], best: Result) -> list[str]:
    """Which metrics lead by other measures than rank correlation."""
    measures = {
        "Kendall's tau-b": "kendall",
        "Pearson's r": "pearson",
        "pairwise accuracy": "pairwise_accuracy",
    }
    leads = {
        name: max(results, key=lambda row: getattr(row, field))
        for name, field in measures.items()
        if not any(math.isnan(getattr(row, field)) for row in results)
    }
    others = [f"{short(row.metric)} by {name}" for name, row in leads.items() if row is not best]
    return [f"Other measures put others first: {_listed(others)}."] if others else []


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
