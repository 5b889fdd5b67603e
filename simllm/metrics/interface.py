"""The interface of all metrics: `score` takes n examples and returns n scores."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from simllm.array_types import Floats
from simllm.errors import InputError

# Takes n candidates and n references, returns (n,) scores.
ScoreFunction = Callable[[Sequence[str], Sequence[str]], Floats]


class UnavailableError(InputError):
    """Error for a metric that cannot be loaded on this machine; the message says what to do."""


@dataclass(frozen=True)
class Example:
    """One text or piece of code to judge, with its reference.

    Attributes:
        candidate: The text or code to judge.
        reference: The text or code to which the candidate is compared; None if there is none, which only a
            few metrics accept.
        source: The code before it was edited, or the code that the candidate describes.
        language: The programming language of the code, such as "java"; None for texts.
    """

    candidate: str
    reference: str | None
    source: str | None = None
    language: str | None = None


class MetricScores(Protocol):
    """Interface of the result of `Metric.score`."""

    @property
    def values(self) -> Floats:
        """(n,) scores, in the order of the examples; higher means more similar.

        For a few metrics of code edits, lower is better (see `simllm.metrics.registry.lower_is_better`).
        """

    @property
    def signature(self) -> str:
        """Text that names everything that can change a score: options, versions, data."""


class Metric(Protocol):
    """Interface of a metric; `SimLLM`, known metrics and metrics of other packages implement it."""

    @property
    def name(self) -> str:
        """The name under which `simllm.metrics.load` finds the metric, such as "bleu"."""

    @property
    def signature(self) -> str:
        """Text that names everything that can change a score: options, versions, data."""

    def score(self, examples: Sequence[Example]) -> MetricScores:
        """Score n examples; return n scores in the same order."""


@dataclass(frozen=True)
class PlainScores:
    """The scores of n examples.

    Attributes:
        values: (n,) scores.
        signature: Text that names everything that can change a score.
        warnings: What changes how the scores are read, such as the number of texts that the metric cannot
            read. The metric also issues these warnings.
    """

    values: Floats
    signature: str
    warnings: tuple[str, ...] = ()

    @property
    def mean(self) -> float:
        """Mean of the n scores; NaN if n is 0."""
        return float(self.values.mean()) if len(self.values) else float("nan")


@dataclass(frozen=True)
class FunctionMetric:
    """A metric that is made from a scoring function.

    Attributes:
        name: The name of the metric.
        signature: Text that names everything that can change a score.
        compute: Takes n candidates and n references, and returns (n,) scores.
        warnings: Takes n candidates, n references and their (n,) scores, and returns what changes how the
            scores are read. None if nothing does.
    """

    name: str
    signature: str
    compute: ScoreFunction
    warnings: Callable[[Sequence[str], Sequence[str], Floats], tuple[str, ...]] | None = None

    def score(self, examples: Sequence[Example]) -> PlainScores:
        """Score n examples; each candidate is compared with the reference in the same example."""
        sides = candidates_and_references(examples)
        values = np.asarray(self.compute(*sides), np.float64)
        found = self.warnings(*sides, values) if self.warnings else ()
        for message in found:
            warnings.warn(message, stacklevel=2)
        return PlainScores(values, self.signature, found)


def check_examples(examples: Sequence[Example]) -> None:
    """Raise TypeError if an item is not an `Example`."""
    for index, example in enumerate(examples):
        if not isinstance(example, Example):
            raise TypeError(f"examples[{index}]: expected an Example, got {type(example).__name__}")


def candidates_and_references(examples: Sequence[Example]) -> tuple[list[str], list[str]]:
    """Split n examples into a list of n candidates and a list of n references.

    Raises:
        TypeError: An item of `examples` is not an `Example`.
        InputError: An example has no reference.
    """
    check_examples(examples)
    references = [example.reference for example in examples if example.reference is not None]
    if len(references) < len(examples):
        first = next(index for index, example in enumerate(examples) if example.reference is None)
        raise InputError(f"examples[{first}]: has no reference, which the metric needs")
    return [example.candidate for example in examples], references


def pair_scores(metric: Metric, candidates: Sequence[str], references: Sequence[str]) -> Floats:
    """Score n candidates with a metric, each against its own reference; return (n,) scores."""
    return metric.score(list(map(Example, candidates, references))).values
