"""The class of all metrics for code, and the shape of their scoring functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import simllm
from simllm.array_types import Floats
from simllm.code.languages.language import find_language
from simllm.errors import InputError
from simllm.metrics.interface import Example, candidates_and_references

Items = Sequence[Sequence[Example]]  # for each item, the examples of its candidates


@dataclass(frozen=True)
class CodeScorer:
    """The scoring functions of a metric for code.

    Attributes:
        compute: Takes n examples at once, because some metrics first count n-grams in all of them, and
            returns n scores; NaN where an example has no score.
        corpus: Computes the corpus value; NaN where it is undefined. None if the metric has none. A corpus
            value is not the mean of the scores: large examples weigh more.
    """

    compute: Callable[[Sequence[Example]], Sequence[float]]
    corpus: Callable[[Items], float] | None = None


@dataclass(frozen=True)
class CodeScores:
    """The scores of n examples.

    Attributes:
        values: (n,) scores; NaN where an example has no score.
        signature: Text that names everything that can change a score.
    """

    values: Floats
    signature: str

    @property
    def unscored(self) -> int:
        """Number of examples without a score, such as those that take too long to parse."""
        return int(np.isnan(self.values).sum())

    @property
    def mean(self) -> float:
        """Mean of the scores without NaN; NaN if no example has a score."""
        return float(np.nanmean(self.values)) if self.unscored < len(self.values) else float("nan")


@dataclass(frozen=True)
class CodeMetric:
    """A metric for code, or for an edit of code; its name includes the argument: "lemod=multiset"."""

    name: str
    scorer: CodeScorer
    needs_source: bool

    @property
    def signature(self) -> str:
        """The metric and the version of simllm."""
        return f"{self.name}|version:{simllm.__version__}"

    def score(self, examples: Sequence[Example]) -> CodeScores:
        """Score n examples; each must have a supported language, and a source if the metric needs one."""
        candidates_and_references(examples)  # for its TypeError
        for index, example in enumerate(examples):
            if example.language is None:
                raise InputError(f"examples[{index}]: the metric {self.name} needs a language")
            if self.needs_source and example.source is None:
                raise InputError(f"examples[{index}]: the metric {self.name} needs a source")
        # An unsupported language is an error before the first score, which may take long.
        for language in {example.language for example in examples if example.language is not None}:
            find_language(language)
        return CodeScores(np.array(self._compute(examples), np.float64), self.signature)

    def _compute(self, examples: Sequence[Example]) -> Sequence[float]:
        """Compute the scores; code that takes too long to parse gets NaN, so that the others keep theirs."""
        try:
            return self.scorer.compute(examples)
        except TimeoutError:
            slow = [self._is_too_slow(example) for example in examples]
            rest = iter(
                self.scorer.compute([one for one, is_slow in zip(examples, slow, strict=True) if not is_slow])
            )
            return [math.nan if is_slow else next(rest) for is_slow in slow]

    def _is_too_slow(self, example: Example) -> bool:
        try:
            self.scorer.compute([example])
        except TimeoutError:
            return True
        return False

    def corpus_value(self, items: Items) -> float | None:
        """Compute the corpus value; None if the metric has none, it is undefined, or parsing takes too long.

        The examples of an item have the same source and reference.
        """
        try:
            value = self.scorer.corpus(items) if self.scorer.corpus else math.nan
        except TimeoutError:
            return None
        return None if math.isnan(value) else value
