"""A cascade: simllm decides where it is sure whether two texts mean the same, and a judge decides the rest.

simllm is unsure about a pair if its probability that both texts have the same meaning (`same`) lies inside an
interval. Only these pairs cost a request. The judge's score is put on the scale of `same`, from 0 to 1.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simllm.array_types import Floats
from simllm.errors import InputError
from simllm.metric import SimLLM
from simllm.metrics.interface import Example
from simllm.scoring.scores import Scores

if TYPE_CHECKING:
    from simllm.metrics.judge.pointwise import PointwiseJudge

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
    scores = metric.score([one.candidate for one in examples], [one.reference for one in examples])
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
