"""The conclusions of a study, written as English sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from numpy.typing import NDArray

from simllm.io.display_names import short_label
from simllm.io.number_format import format_number
from simllm.stats.correlation_differences import LEVEL
from simllm.stats.rater_agreement import RaterAgreement

if TYPE_CHECKING:
    import numpy as np

    from simllm.evaluation.metric_study.study_results import MetricResult

_FEW = 30  # pairs; with fewer, bootstrap intervals are too narrow
_PAPER_LEVEL = 0.001  # the level of significance in the SIMLLM paper


def write_conclusions(
    results: Sequence[MetricResult],
    p: NDArray[np.float64],
    pairs: int,
    people: RaterAgreement | None,
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


def _differences(results: Sequence[MetricResult], p: NDArray[np.float64], pairs: int) -> list[str]:
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
