"""Correlations of several metrics with one set of ratings."""

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
from simllm.metrics.registry import Column
from simllm.metrics.text import UnavailableError
from simllm.stats.correlation import spearman
from simllm.text import clean


@dataclass(frozen=True)
class Row:
    """One metric's correlation with the ratings of n pairs."""

    metric: str
    n: int
    spearman: float
    p_value: float
    low: float  # 95% bootstrap interval
    high: float
    signature: str


@dataclass(frozen=True)
class Correlations:
    """Rows in the order of the metrics, and for each missing metric what to do about it."""

    rows: list[Row]
    missing: dict[str, str] = field(default_factory=dict)


def correlate(
    file: Path, names: Sequence[str] | None = None, model: str | os.PathLike[str] | None = None
) -> Correlations:
    """Correlate each metric with the ratings in `file`; raise InputError for bad input."""
    rated = cleaned(ratings.load(file))
    found, missing = registry.load_all(registry.names() if names is None else names, model)
    correlations = correlate_all(rated, found)
    return Correlations(correlations.rows, {**missing, **correlations.missing})


def correlate_all(rated: Ratings, metrics: Sequence[Metric]) -> Correlations:
    """Correlate loaded metrics with the ratings of cleaned pairs."""
    rows, missing = [], {}
    for metric in metrics:
        try:
            values = scores(metric, rated)
        except UnavailableError as error:
            missing[metric.name] = str(error)
            continue
        found = spearman(values, rated.values)
        row = (len(values), found.rho, found.p_value, found.low, found.high, metric.signature)
        rows.append(Row(metric.name, *row))
    return Correlations(rows, missing)


def cleaned(rated: Ratings) -> Ratings:
    """Clean the texts as simllm does, so that no metric gains or loses by case, markup or spacing."""
    references, candidates = (
        [clean(text) for text in texts] for texts in (rated.references, rated.candidates)
    )
    return replace(rated, references=references, candidates=candidates)


def scores(metric: Metric, rated: Ratings) -> NDArray[np.float64]:
    """Score the rated pairs, or read the scores that come with them: (n,) finite values.

    Raises UnavailableError if there are no such scores, or all are equal, or some are no numbers.
    """
    if isinstance(metric, Column):
        found = rated.columns.get(metric.column, np.array([np.nan]))
        if np.isnan(found).any():
            known = ", ".join(name for name, column in rated.columns.items() if not np.isnan(column).any())
            raise UnavailableError(
                f"{rated.name} has no complete column {metric.column}; it has {known or 'none'}"
            )
    else:
        found = pair_scores(metric, rated.candidates, rated.references)
    if not np.isfinite(found).all():
        raise UnavailableError(f"some of its scores of {rated.name} are not finite")
    if np.ptp(found) == 0:
        raise UnavailableError(f"it gives all pairs of {rated.name} the same score")
    return found
