"""A judge (a language model as a metric) beside simllm: its bias, and a cascade in which it decides.

*Bias*: for which pairs the judge is kinder than simllm, and for which it is harder. The two have different
scales. Both are therefore ranked among the same pairs, from 0 to 1, and the *excess* of a pair is its rank
by the judge minus its rank by simllm. An excess that depends on the length of a text, on copied words or on
the system is a bias of one of the two; only ratings by people tell which of the two is biased.

*Cascade*: simllm is unsure about a pair if its probability that both texts have the same meaning (`same`)
lies inside an interval. Only these pairs cost a request. The judge's score is put on the scale of `same`,
from 0 to 1.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simllm.array_types import Floats
from simllm.errors import InputError
from simllm.io.tables import format_number, format_p_value, short_label
from simllm.metric import SimLLM
from simllm.metrics.interface import Example
from simllm.scoring.scores import Scores
from simllm.stats.resampling import LEAST_ITEMS, paired_mean
from simllm.stats.significance import holm, rank_correlation

if TYPE_CHECKING:
    from simllm.metrics.judge.pointwise import PointwiseJudge

_PARTS = ("lowest third", "middle third", "highest third")
_MOST_GROUPS = 12  # of a field; more are names of pairs, not of groups


@dataclass(frozen=True)
class BiasRow:
    """The mean excess of the judge in a group of pairs.

    Attributes:
        factor: What divides the pairs into groups, such as "words of the candidate".
        group: The group, such as "lowest third: up to 7".
        n: The number of pairs.
        excess: The mean rank by the judge minus the rank by simllm; above 0, the judge is kinder.
        low: Lower bound of the 95% bootstrap interval of `excess`; NaN if there are too few pairs.
        high: Upper bound of that interval.
    """

    factor: str
    group: str
    n: int
    excess: float
    low: float
    high: float


@dataclass(frozen=True)
class BiasTrend:
    """Spearman's rho of the excess with a number of each pair; the p-value is corrected (Holm)."""

    factor: str
    rho: float
    p_value: float


@dataclass(frozen=True)
class JudgeBias:
    """The bias of a judge on n pairs with scores of both."""

    n: int
    trends: list[BiasTrend]
    rows: list[BiasRow]

    def sentences(self) -> list[str]:
        """Say in a line for each factor whether the judge's excess depends on it."""
        lines = []
        for trend in self.trends:
            if math.isnan(trend.rho) or trend.p_value >= 0.05:
                says = "no trend"
            else:
                says = f"kinder than simllm to pairs with {'more' if trend.rho > 0 else 'less'}"
            figures = f"rho {format_number(trend.rho, 2)}, p {format_p_value(trend.p_value, sign=True)}"
            lines.append(f"{trend.factor}: {says} ({figures})")
        for row in self.rows:
            if row.factor not in {trend.factor for trend in self.trends} and (row.low > 0 or row.high < 0):
                says = "kinder" if row.excess > 0 else "harder"
                lines.append(
                    f"{row.factor} {row.group}: {says} than simllm by {format_number(abs(row.excess), 2)} "
                    f"of all ranks ({row.n} pairs)"
                )
        return lines


def judge_bias(
    judged: Floats,
    scores: Floats,
    candidates: Sequence[str],
    references: Sequence[str],
    groups: Mapping[str, Sequence[str]] | None = None,
) -> JudgeBias | None:
    """Compare a judge's (n,) scores with simllm's by length, copied words and groups such as systems.

    Pairs without a score are left out. None if fewer than six pairs are left, or all scores are equal.
    """
    from scipy.stats import rankdata

    known: list[int] = np.flatnonzero(~np.isnan(judged) & ~np.isnan(scores)).tolist()
    if len(known) < LEAST_ITEMS or np.ptp(judged[known]) == 0 or np.ptp(scores[known]) == 0:
        return None
    ranks = [(rankdata(values[known]) - 0.5) / len(known) for values in (judged, scores)]
    excess = ranks[0] - ranks[1]
    pairs = [(candidates[place].split(), references[place].split()) for place in known]
    factors = {
        "words of the candidate": np.array([len(one) for one, _ in pairs], float),
        "words of the reference": np.array([len(other) for _, other in pairs], float),
        "copied words of the candidate": np.array([_copied(*pair) for pair in pairs]),
    }
    outcomes = {name: rank_correlation(values, excess) for name, values in factors.items()}
    corrected = holm([one.p if not math.isnan(one.p) else 1.0 for one in outcomes.values()])
    trends = [
        BiasTrend(name, one.statistic, p) for (name, one), p in zip(outcomes.items(), corrected, strict=True)
    ]
    rows = [row for name, values in factors.items() for row in _thirds(name, values, excess)]
    for name, values_ in (groups or {}).items():
        own = np.array([values_[place] for place in known])
        names = sorted(set(own.tolist()))
        if 1 < len(names) <= _MOST_GROUPS:
            rows += [_row(name, short_label(group), excess[own == group]) for group in names]
    return JudgeBias(len(known), trends, rows)


def _copied(candidate: Sequence[str], reference: Sequence[str]) -> float:
    """Return the share of a candidate's words that stand in the reference; 0 without words."""
    there = {word.lower().strip(".,;:!?()") for word in reference}
    found = [word.lower().strip(".,;:!?()") in there for word in candidate]
    return sum(found) / len(found) if found else 0.0


def _thirds(name: str, values: Floats, excess: Floats) -> list[BiasRow]:
    """Return a row for each third of the pairs by a number; pairs with equal numbers stay together."""
    bounds = np.quantile(values, [1 / 3, 2 / 3], method="lower")
    parts = np.searchsorted(bounds, values, side="left")
    rows = []
    for number, part in enumerate(_PARTS):
        inside = parts == number
        if inside.any():
            ends = f"{values[inside].min():.3g} to {values[inside].max():.3g}"
            rows.append(_row(name, f"{part}: {ends}", excess[inside]))
    return rows


def _row(factor: str, group: str, excess: Floats) -> BiasRow:
    mean = paired_mean(excess)
    return BiasRow(factor, group, len(excess), mean.mean, mean.low, mean.high)


_MIDDLE = 0.5  # from here on, two texts count as the same in meaning


@dataclass(frozen=True)
class Cascade:
    """The result of a cascade on n pairs.

    Attributes:
        scores: The scores of simllm, with `same`.
        judged: (n,) scores of the judge on its own scale; NaN for pairs that it was not asked about, and for
            those without a readable reply.
        asked: (n,) whether the judge was asked.
        decided: (n,) values from 0 to 1: the judge's score on this scale where there is one, else `same`.
        facts: Counts of pairs, the judge's requests, tokens and cost, by name.
    """

    scores: Scores
    judged: Floats
    asked: NDArray[np.bool_]
    decided: Floats
    facts: Mapping[str, Any]

    @property
    def by_judge(self) -> NDArray[np.bool_]:
        """(n,) whether the judge decided."""
        known: NDArray[np.bool_] = ~np.isnan(self.judged)
        return known


def cascade(
    metric: SimLLM, judge: PointwiseJudge, examples: Sequence[Example], low: float, high: float
) -> Cascade:
    """Score n pairs by simllm, and ask a judge about those whose `same` lies between two bounds.

    The bounds themselves belong to the interval.

    Raises:
        InputError: The model has no meaning head, which computes `same`.
        LostReplyError: The endpoint stopped answering. The next call asks for the missing replies.
    """
    scores = metric.score(examples, against="reference")
    if scores.same is None:
        raise InputError("the model folder has no meaning head, which a cascade needs")
    same = np.asarray(scores.same, np.float64)
    asked = (same >= low) & (same <= high)
    judged = np.full(len(examples), np.nan)
    facts: dict[str, Any] = {"pairs for the judge": int(asked.sum())}
    if asked.any():
        # Pairs without a readable reply fall back to simllm, even if they are all.
        found = judge.readable_scores([examples[place] for place in np.flatnonzero(asked).tolist()])
        for message in found.warnings:
            warnings.warn(message, stacklevel=2)
        judged[asked] = found.values
        facts |= found.facts
    known = ~np.isnan(judged)
    steps = judge.judge.settings.steps
    scaled = (judged - steps.low) / (steps.high - steps.low)
    facts["pairs without a judge's score"] = int((asked & ~known).sum())
    facts["decisions that differ"] = int(((scaled >= _MIDDLE) != (same >= _MIDDLE))[known].sum())
    return Cascade(scores, judged, asked, np.where(known, scaled, same), facts)
