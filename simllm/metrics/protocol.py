"""The protocol of all metrics: `score` takes examples and returns one score for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# Takes n candidates and n references, returns (n,) scores.
ScoreFunction = Callable[[Sequence[str], Sequence[str]], Floats]


@dataclass(frozen=True)
class Example:
    """One candidate and its reference.

    Attributes:
        candidate: The text or code to judge.
        reference: The text or code to compare it with.
        source: The text or code before the change; metrics of edits need it.
        language: The programming language of the code, such as "java".
    """

    candidate: str
    reference: str
    source: str | None = None
    language: str | None = None


class MetricScores(Protocol):
    """The scores of n examples, in their order."""

    @property
    def values(self) -> Floats:
        """(n,) scores; higher means more similar."""

    @property
    def signature(self) -> str:
        """The signature of the metric."""


class Metric(Protocol):
    """A metric: `SimLLM`, a baseline, or a class of your own."""

    @property
    def name(self) -> str:
        """The name under which the metric was loaded."""

    @property
    def signature(self) -> str:
        """Everything that can change a score: name, options, versions, data."""

    def score(self, examples: Sequence[Example]) -> MetricScores:
        """Score n examples."""


@dataclass(frozen=True)
class PlainScores:
    """Scores with their signature, and nothing else."""

    values: Floats  # (n,)
    signature: str

    @property
    def mean(self) -> float:
        """Mean of the values; NaN for no examples."""
        return float(self.values.mean()) if len(self.values) else float("nan")


@dataclass(frozen=True)
class FunctionMetric:
    """A metric that is defined by a function.

    Attributes:
        name: The name of the metric.
        signature: Everything that can change a score.
        compute: Takes n candidates and n references, returns (n,) scores.
    """

    name: str
    signature: str
    compute: ScoreFunction

    def score(self, examples: Sequence[Example]) -> PlainScores:
        """Score n examples; their sources and languages are not used."""
        values = self.compute(*candidates_and_references(examples))
        return PlainScores(np.asarray(values, np.float64), self.signature)


def candidates_and_references(examples: Sequence[Example]) -> tuple[list[str], list[str]]:
    """Return the candidates and the references of examples; raise TypeError for any other object."""
    for index, example in enumerate(examples):
        if not isinstance(example, Example):
            raise TypeError(f"examples[{index}]: expected an Example, got {type(example).__name__}")
    return [example.candidate for example in examples], [example.reference for example in examples]


def pair_scores(metric: Metric, candidates: Sequence[str], references: Sequence[str]) -> Floats:
    """Return the (n,) scores of n candidates against n references."""
    return metric.score(list(map(Example, candidates, references))).values
