"""What a study's numbers allow to say, in sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from simllm.stats.rater_agreement import Agreement
from simllm.stats.significance import LEVEL

if TYPE_CHECKING:
    from simllm.evaluation.study import Result

_FEW = 30  # pairs
_PAPER_LEVEL = 0.001  # SIMLLM calls a correlation significant below it


def number(value: float, digits: int = 3) -> str:
    """A correlation or a p-value as papers have it: without the zero before the point."""
    return "n/a" if math.isnan(value) else f"{value:.{digits}f}".replace("0.", ".", 1)


def in_words(
    results: Sequence[Result],
    p: NDArray[np.float64],
    pairs: int,
    people: Agreement | None,
) -> list[str]:
    """Who agrees best, who cannot be told apart from it by (m, m) corrected `p`, and the ceiling.

    The results are sorted, the best first.
    """
    best = results[0]
    said = [
        f"{best.metric} agrees best with people: Spearman {number(best.spearman)}, "
        f"95% interval {number(best.low)} to {number(best.high)}."
    ]
    compared = len(results) * (len(results) - 1) // 2
    test = f"permutation test at {LEVEL}, Holm's correction for {compared} comparisons"
    others = list(zip(results, p[0], strict=True))[1:]
    peers = [row for row, of in others if of >= LEVEL]
    if peers:
        listed = _listed([f"{row.metric} ({number(row.spearman)})" for row in peers])
        widest = number(best.spearman - peers[-1].spearman)
        said.append(
            f"{pairs:,} pairs cannot separate it from {listed}: "
            f"here a lead of {widest} may be chance ({test})."
        )
    worse = [row.metric for row, of in others if of < LEVEL]
    if worse:
        listed = _listed(worse)
        said.append(f"It is significantly better than {listed} ({test}).")
    weak = [row.metric for row in results if row.p_value >= _PAPER_LEVEL]
    said.append(
        f"Not significant at p < {_PAPER_LEVEL}: {_listed(weak)}."
        if weak
        else f"Every correlation is significant at p < {_PAPER_LEVEL}."
    )
    if pairs < _FEW:
        said.append(f"{pairs} pairs are few: intervals of a bootstrap over fewer than {_FEW} are too narrow.")
    return said + _otherwise(results, best) + (_ceiling(people) if people else [])


def _ceiling(people: Agreement) -> list[str]:
    single = [rho for rho in people.one_against_rest if not np.isnan(rho)]
    if not single or np.isnan(people.ceiling):
        return []
    return [
        f"One of the {people.raters} raters correlates with the mean of the others at "
        f"{number(min(single))} to {number(max(single))}, half of them with the other half at "
        f"{number(people.split_half)}: against the mean of all a metric can be expected to reach "
        f"{number(people.ceiling)} (Spearman and Brown)."
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
    others = [f"{row.metric} by {name}" for name, row in leads.items() if row is not best]
    return [f"Other measures put others first: {_listed(others)}."] if others else []


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
