"""Correlation between metrics' scores and human ratings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simllm.evaluation import ratings
from simllm.evaluation.ratings import Ratings
from simllm.metrics import registry
from simllm.metrics.protocol import Metric, pair_scores
from simllm.metrics.registry import ColumnMetric
from simllm.metrics.text import UnavailableError
from simllm.stats.correlation import spearman
from simllm.text_cleaning import clean


@dataclass(frozen=True)
class MetricCorrelation:
    """The correlation between a metric's scores and the human ratings of n pairs.

    Attributes:
        metric: The name of the metric.
        n: Number of rated pairs.
        spearman: Spearman's rho.
        p_value: Two-sided p-value of rho.
        low: Lower bound of rho's 95% bootstrap interval.
        high: Upper bound of that interval.
        signature: A text with everything that can change the metric's scores, such as options and versions.
    """

    metric: str
    n: int
    spearman: float
    p_value: float
    low: float
    high: float
    signature: str


@dataclass(frozen=True)
class Correlations:
    """Correlations between several metrics and the same human ratings.

    Attributes:
        rows: The correlation of each available metric.
        missing: For each unavailable metric, by name, advice on how to make it available.
    """

    rows: list[MetricCorrelation]
    missing: dict[str, str] = field(default_factory=dict)


def correlate(
    file: Path, names: Sequence[str] | None = None, model: str | os.PathLike[str] | None = None
) -> Correlations:
    """Correlate the scores of metrics with human ratings.

    Args:
        file: A file of rated pairs (see `simllm.evaluation.ratings`).
        names: The names of the metrics; None means all metrics.
        model: The model folder of the metric `simllm`; None means the included model.

    Raises:
        InputError: The file cannot be read, a name is unknown, or no metric is available.
    """
    rated = clean_ratings(ratings.load(file))
    metrics, missing = registry.load_all(registry.names() if names is None else names, model)
    correlations = correlate_all(rated, metrics)
    return Correlations(correlations.rows, {**missing, **correlations.missing})


def correlate_all(rated: Ratings, metrics: Sequence[Metric]) -> Correlations:
    """Correlate the scores of loaded metrics with the human ratings of pairs.

    Args:
        rated: The rated pairs; their texts should be clean (see `clean_ratings`).
        metrics: The metrics.
    """
    rows, missing = [], {}
    for metric in metrics:
        try:
            values = score_rated_pairs(metric, rated)
        except UnavailableError as error:
            missing[metric.name] = str(error)
            continue
        result = spearman(values, rated.values)
        row = (len(values), result.rho, result.p_value, result.low, result.high, metric.signature)
        rows.append(MetricCorrelation(metric.name, *row))
    return Correlations(rows, missing)


def clean_ratings(rated: Ratings) -> Ratings:
    """Clean the texts of rated pairs like simllm does, so that case, markup and spacing affect no metric."""
    references, candidates = (
        [clean(text) for text in texts] for texts in (rated.references, rated.candidates)
    )
    return replace(rated, references=references, candidates=candidates)


def score_rated_pairs(metric: Metric, rated: Ratings) -> NDArray[np.float64]:
    """Score n pairs of texts by a metric.

    A `ColumnMetric` computes nothing: its scores come from a column in the file of ratings.

    Args:
        metric: The metric.
        rated: n pairs of candidate and reference, with human ratings.

    Returns:
        (n,) finite scores.

    Raises:
        UnavailableError: The column is missing or incomplete, a score is not finite, or all scores are
            equal.
    """
    if isinstance(metric, ColumnMetric):
        scores = rated.columns.get(metric.column, np.array([np.nan]))
        if np.isnan(scores).any():
            complete = ", ".join(name for name, column in rated.columns.items() if not np.isnan(column).any())
            raise UnavailableError(
                f"{rated.name} has no complete column {metric.column}; it has {complete or 'none'}"
            )
    else:
        scores = pair_scores(metric, rated.candidates, rated.references)
    if not np.isfinite(scores).all():
        raise UnavailableError(f"some of its scores of {rated.name} are not finite")
    if np.ptp(scores) == 0:
        raise UnavailableError(f"it gives all pairs of {rated.name} the same score")
    return scores
