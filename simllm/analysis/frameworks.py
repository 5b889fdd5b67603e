"""The metric in other frameworks: an assertion for tests, a model for MTEB, a module for `evaluate`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simllm.errors import InputError, OptionError
from simllm.metric import SimLLM
from simllm.scoring.scores import CHANGED, Scores, about_percentiles

if TYPE_CHECKING:
    from mteb.models import ModelMeta

# `evaluate.load` takes the path of this folder, as a str.
EVALUATE_MODULE = str(Path(__file__).with_name("simllm_score"))


@cache
def default_metric() -> SimLLM:
    """Return the metric with the included model; it is loaded once in a process."""
    return SimLLM()


_RANGES = {"raw": (-1, 1), "percentile": (0, 100), "same": (0, 1), "graded": (0, 1)}


def assert_same_meaning(
    candidate: str,
    reference: str,
    limit: float | None = None,
    *,
    scale: str = "same",
    metric: SimLLM | None = None,
) -> None:
    """Raise AssertionError if a text does not mean the same as its reference.

    The message has both texts, their score, and what `simllm explain` finds: the words that change the
    meaning or, of texts with several sentences, the clauses that differ.

    Args:
        candidate: The text to test, such as a generated summary.
        reference: The text that the candidate is compared with.
        limit: The smallest value that passes; by default 0.5, except with `percentile`, which reaches to 100.
        scale: The scale of the value and its limit, as in `Scores.on`: `same` for the probability that both
            texts have the same meaning, or `raw`, `percentile` or `graded`.
        metric: The metric; by default the one with the included model, which is loaded at the first call.

    Raises:
        AssertionError: The value is below the limit.
        InputError: The scale is unknown, the limit is not on it, or the model has no values on it.
        TypeError: A text is no string.
    """
    __tracebackhide__ = True  # pytest shows the line of the test, and not this function
    if limit is None and scale == "percentile":
        raise OptionError("{limit}: expected a limit from 0 to 100 with the scale percentile")
    limit = 0.5 if limit is None else limit
    smallest, largest = _RANGES.get(scale, (limit, limit))  # `on` refuses an unknown scale
    if not smallest <= limit <= largest:
        raise OptionError(f"{{limit}} {limit:g}: expected {smallest} to {largest} on the scale {scale}")
    metric = metric or default_metric()
    with warnings.catch_warnings(record=True) as caught:
        # Where warnings are errors, those about long texts must not take the place of the assertion.
        warnings.simplefilter("always", UserWarning)
        scores = metric.score([candidate], [reference])
        for message in about_percentiles(scores, scale):
            warnings.warn(message, stacklevel=2)
            scores = replace(scores, warnings=(*scores.warnings, message))
        value = float(scores.on(scale)[0])
        if value < limit:
            message = _describe_difference(metric, candidate, reference, scores, scale, value, limit)
            raise AssertionError(message)
    for warning in caught:
        warnings.warn(warning.message, stacklevel=2)


def _describe_difference(
    metric: SimLLM,
    candidate: str,
    reference: str,
    scores: Scores,
    scale: str,
    value: float,
    limit: float,
) -> str:
    """Write the message about a pair whose value is below the limit."""
    measured = f"score {scores.values[0]:.4f}"
    if scores.same is not None:
        measured += f", same {scores.same[0]:.4f}"
    name = "score" if scale == "raw" else scale
    shown = f"{value:.4f}" if round(value, 4) < limit else repr(value)
    return "\n".join(
        [
            f"the texts differ in meaning: {name} {shown} is below the limit {limit:g}",
            f"  candidate: {candidate!r}",
            f"  reference: {reference!r}",
            f"  {measured}{f' ({CHANGED})' if scores.changed[0] else ''}",
            *(f"  {line}" for line in _explain_difference(metric, candidate, reference)),
            *(f"  warning: {message}" for message in scores.warnings),
            f"  signature: {scores.signature}",
        ]
    )


def _explain_difference(metric: SimLLM, candidate: str, reference: str) -> list[str]:
    """List the words that change the meaning, or the clauses that differ; nothing if neither is known."""
    from simllm.analysis.explanation import explain, explain_clauses

    try:
        by_clause = explain_clauses(metric, candidate, reference)
        if by_clause is None:
            words = ", ".join(explain(metric, candidate, reference).changing_words)
            return [f"words that change the meaning: {words}"] if words else []
    except InputError:  # an empty text, or a metric whose scores are no sums over words
        return []
    sides = (("candidate", by_clause.candidate), ("reference", by_clause.reference))
    return [
        f"{side} {clause.text!r}: {clause.note or 'differs'}; closest to {clause.match!r}"
        for side, clauses in sides
        for clause in clauses
        if clause.note or (clause.same is not None and clause.same < 0.5)
    ]


class MtebModel:
    """The encoder of a metric as a model of the benchmark MTEB: `mteb.evaluate(MtebModel(), tasks)`.

    MTEB compares the embeddings of whole texts. Their cosine is the score of `SimLLM(long="whole")`.

    Examples:
        >>> model = MtebModel(SimLLM(long="whole", pooling="max"))
    """

    def __init__(self, metric: SimLLM | None = None) -> None:
        """Take a metric with `long="whole"` and cosine; by default one with the included model.

        Raises:
            InputError: The scores of the metric are not cosines of embeddings.
        """
        self.metric = metric or SimLLM(long="whole")
        if (self.metric.long, self.metric.similarity) != ("whole", "cosine"):
            raise InputError("MTEB compares embeddings: expected a metric with long='whole' and cosine")

    def encode(self, inputs: Iterable[Mapping[str, Any]], **options: Any) -> NDArray[np.float32]:
        """Compute the (n, D) embeddings of n texts, which come in batches; no prompt is put before them."""
        return self.metric.embed([text for batch in inputs for text in batch["text"]])

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Compute the (n, m) cosines of n and m embeddings."""
        from mteb.similarity_functions import cos_sim

        return cos_sim(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Compute the (n,) cosines of n pairs of embeddings."""
        from mteb.similarity_functions import pairwise_cos_sim

        return pairwise_cos_sim(embeddings1, embeddings2)

    @property
    def mteb_model_meta(self) -> ModelMeta:
        """The description that MTEB stores with the results; its revision is the signature of the metric."""
        from mteb.models import ModelMeta

        # MTEB takes results from its cache where name and revision are the same. The revision names a folder.
        revision = self.metric.signature.replace("|", "_").replace(":", "-")
        known = {
            "name": "simllm/simllm",
            "revision": revision,
            "languages": ["eng-Latn"],
            "max_tokens": self.metric.longest,
            "embed_dim": self.metric.model.config.hidden_size,
            "similarity_fn_name": "cosine",
            "use_instructions": False,
        }
        return ModelMeta.create_empty(known)
