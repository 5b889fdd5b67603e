"""The point-wise judge: a metric that asks a language model for the score of each candidate."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from simllm.errors import InputError
from simllm.llm.reply import Reply
from simllm.metrics.interface import Example, PlainScores, UnavailableError, candidates_and_references
from simllm.metrics.judge.replies import ask
from simllm.metrics.judge.settings import Judge, read_settings


@dataclass(frozen=True)
class JudgeScores(PlainScores):
    """The scores of a judge; NaN for an example without a readable reply.

    Attributes:
        facts: The number of requests, of tokens, and the cost, by name.
    """

    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        """Mean of the scores that are there; NaN without any."""
        known = self.values[~np.isnan(self.values)]
        return float(known.mean()) if len(known) else float("nan")


class PointwiseJudge:
    """A metric that asks a language model. Higher is better; the bounds are those of the judge's scale.

    Attributes:
        name: `judge=` and the TOML file.
        judge: The judge.
    """

    def __init__(self, name: str, judge: Judge) -> None:
        self.name, self.judge = name, judge

    @property
    def signature(self) -> str:
        """Model, template, scale, samples and sampling; not the address, which may have a password."""
        return self.judge.signature

    def score(self, examples: Sequence[Example]) -> JudgeScores:
        """Ask for the score of each example, as far as the cache lacks it.

        Raises:
            UnavailableError: An example lacks the code that the judge reads, or no reply has a score.
            LostReplyError: The endpoint stopped answering. The next call asks for the missing replies.
        """
        scores = self.readable_scores(examples)
        if len(examples) and np.isnan(scores.values).all():
            raise UnavailableError("; ".join(scores.warnings))
        for message in scores.warnings:
            warnings.warn(message, stacklevel=2)
        return scores

    def readable_scores(self, examples: Sequence[Example]) -> JudgeScores:
        """Score examples as `score` does, but issue no warning, and accept that no reply has a score."""
        candidates_and_references(examples)  # for its TypeError
        replies = ask(self.judge, [self.judge.prompt(one) for one in examples], self._read, "a score")
        values = np.array([_mean(own) for own in replies.values], np.float64)
        return JudgeScores(values, self.signature, replies.warnings, replies.facts)

    def _read(self, reply: Reply) -> float | None:
        if reply.text is None:
            return None
        if self.judge.settings.expectation:
            return self.judge.settings.steps.expectation(reply.places or ())
        return self.judge.settings.steps.read(reply.text)


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else float("nan")


def load(file: str) -> PointwiseJudge:
    """Load the metric `judge=FILE`."""
    judge = Judge(Path(file))
    if judge.settings.pairwise:
        raise InputError(
            f"{file}: a pair-wise judge compares systems, and scores no single text; see simllm compare"
        )
    return PointwiseJudge(f"judge={file}", judge)


def reads_source(file: str) -> bool:
    """Return whether the judge of a TOML file reads the code."""
    return read_settings(Path(file)).reads_source


def reads_reference(file: str) -> bool:
    """Return whether the judge of a TOML file reads the reference."""
    return read_settings(Path(file)).reads_reference
