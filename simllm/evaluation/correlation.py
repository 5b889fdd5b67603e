"""Correlation between metrics' scores and human ratings."""

from __future__ import annotations

import math
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simllm.array_types import Floats
from simllm.errors import InputError
from simllm.evaluation import ratings
from simllm.evaluation.ratings import Ratings
from simllm.io.text_pairs import EqualPairs
from simllm.metrics import registry
from simllm.metrics.interface import Metric, UnavailableError, pair_scores
from simllm.metrics.registry import ColumnMetric
from simllm.stats.agreement import round_means
from simllm.stats.classification import area_under_roc
from simllm.stats.correlation import Correlation, kendall, pearson, rank_correlations, spearman
from simllm.stats.resampling import LEAST_ITEMS
from simllm.text_cleaning import clean

_MOST_ALIKE = 0.9  # share of pairs with one value, beyond which few pairs decide on a correlation


@dataclass(frozen=True)
class MetricCorrelation:
    """The correlation between a metric's scores and the human ratings of n pairs of texts.

    Attributes:
        n: Number of rated pairs with a score.
        spearman: Spearman's rho.
        p_value: Two-sided p-value of rho.
        low: Lower bound of rho's 95% bootstrap interval.
        high: Upper bound of that interval.
        signature: A text with everything that can change the metric's scores, such as options and versions.
        auc: Area under the ROC curve: the probability that a pair with rating 1 scores higher than a pair
            with rating 0. None if the ratings are not all 0 or 1.
    """

    metric: str
    n: int
    spearman: float
    p_value: float
    low: float
    high: float
    signature: str
    auc: float | None = None


@dataclass(frozen=True)
class SystemCorrelation:
    """The correlation of the mean scores of k systems with their mean human ratings.

    Attributes:
        systems: The number k of systems, which wrote the candidates.
        pearson: Pearson's r.
        spearman: Spearman's rho.
        kendall: Kendall's tau-b.
        signature: A text with everything that can change the metric's scores.
    """

    metric: str
    systems: int
    pearson: float
    spearman: float
    kendall: float
    signature: str


@dataclass(frozen=True)
class Correlations:
    """Correlations between several metrics and the same human ratings.

    The scores of metrics for which lower is better are negated, so that a positive correlation always means
    agreement with people.

    Attributes:
        rows: For each available metric, its correlation with the ratings.
        missing: A dict from the name of each unavailable metric to the reason, or to advice on how to make it
            available.
    """

    rows: list[MetricCorrelation]
    missing: dict[str, str] = field(default_factory=dict)


def correlate(
    file: Path,
    names: Sequence[str] | None = None,
    model: str | os.PathLike[str] | None = None,
    fields: Sequence[str] = (),
) -> Correlations:
    """Correlate the scores of metrics with human ratings.

    Args:
        file: A file of rated pairs (see `simllm.evaluation.ratings`).
        names: The names of the metrics; None means all metrics for natural language, and none for code.
        model: The model folder of the metric `simllm`; None means the included model.
        fields: The keys of reference, candidate and ratings in the file (see `ratings.load`).

    Returns:
        The correlation of each available metric, and the reasons why other metrics are not available.

    Raises:
        InputError: The file cannot be read, the name of a metric is unknown, or no metric is available.
    """
    rated = ratings.load(file, fields)
    metrics, missing = registry.load_all(names, model)
    correlations = correlate_all(rated, metrics)
    return replace(correlations, missing={**missing, **correlations.missing})


def correlate_all(rated: Ratings, metrics: Sequence[Metric]) -> Correlations:
    """Correlate the scores of loaded metrics with human ratings.

    Pairs to which a metric gives no score (NaN) are left out for this metric.

    Returns:
        The correlations. If a metric cannot score these pairs, its name and the reason are in
        `Correlations.missing`.
    """
    rows: list[MetricCorrelation] = []
    missing: dict[str, str] = {}
    for message in warnings_about(rated):
        warnings.warn(message, stacklevel=2)
    for metric, values in score_by_all(rated, metrics, missing):
        known = ~np.isnan(values)
        scores, rating = values[known], rated.values[known]
        result = spearman(scores, rating)
        auc = (
            area_under_roc(scores[rating == 1], scores[rating == 0])
            if set(rating.tolist()) == {0, 1}
            else None
        )
        for message in _warnings_about_scores(metric.name, len(rated.values), result, scores):
            warnings.warn(message, stacklevel=2)
        row = (len(scores), result.rho, result.p_value, result.low, result.high, metric.signature, auc)
        rows.append(MetricCorrelation(metric.name, *row))
    return Correlations(rows, missing)


def warnings_about(rated: Ratings) -> Iterator[str]:
    """Yield warnings about rated pairs that make every correlation with their ratings doubtful."""
    n = len(rated.values)
    equal = EqualPairs()
    equal.count(zip(rated.candidates, rated.references, strict=True))
    if n < LEAST_ITEMS:
        # Of n! orders of the scores, one has the rho 1 and one has -1.
        least = 2 / math.factorial(n)
        yield f"{n} rated pairs: p is at least {least:.2g}, whatever the scores are; no intervals are given"
    yield from equal.warnings()
    rating, count = Counter(rated.values.tolist()).most_common(1)[0]
    if count > _MOST_ALIKE * n:
        yield f"{count} of {n} pairs have the same rating ({rating:g}); the correlation depends on the others"


def _warnings_about_scores(name: str, pairs: int, result: Correlation, scores: Floats) -> Iterator[str]:
    """Yield warnings about scores whose correlation does not mean what it seems to."""
    if len(scores) < pairs:
        yield f"{name}: {pairs - len(scores)} of {pairs} pairs have no score and are left out"
    score, count = Counter(scores.tolist()).most_common(1)[0]
    if count > _MOST_ALIKE * len(scores):
        yield f"{name}: {count} of {len(scores)} pairs have the same score ({score:.4g})"
    if result.rho < 0 and result.p_value < 0.05:
        yield f"{name}: scores fall where ratings rise; is a high rating the better one?"


def correlate_systems(
    file: Path,
    names: Sequence[str] | None = None,
    model: str | os.PathLike[str] | None = None,
    fields: Sequence[str] = (),
) -> tuple[list[SystemCorrelation], dict[str, str]]:
    """Correlate the mean scores of systems with their mean human ratings, for several metrics.

    Args:
        file: A file of rated pairs; each line names its `system`, which wrote the candidate.
        names: The names of the metrics; None means all metrics for natural language, and none for code.
        model: The model folder of the metric `simllm`; None means the included model.
        fields: The keys of reference, candidate and ratings in the file (see `ratings.load`).

    Returns:
        A list with the correlation of each available metric; and a dict from the name of each unavailable
        metric to the reason, or to advice on how to make it available.

    Raises:
        InputError: The file cannot be read or has fewer than 3 systems, the name of a metric is unknown, or
            no metric is available.
    """
    rated = ratings.load(file, fields)
    systems = np.array(rated.groups.get("system", []))
    if len(found := sorted(set(systems.tolist()))) < 3:
        raise InputError(f'{file}: {len(found)} systems under "system"; a correlation needs at least 3')
    if len(found) < LEAST_ITEMS:
        chance = 2 / math.factorial(len(found))
        message = f"random scores order them like the ratings, or in reverse, with p = {chance:.2g}"
        warnings.warn(f"{len(found)} systems are few: {message}", stacklevel=2)
    metrics, missing = registry.load_all(names, model)
    means = _means_of_groups(rated.values, systems, found)
    rows = []
    for metric, values in score_by_all(rated, metrics, missing):
        known = ~np.isnan(values)
        # The correlations of the metrics must be over the same systems.
        if any(not known[systems == system].any() for system in found):
            missing[metric.name] = "it has no score for a whole system"
            continue
        scores = _means_of_groups(values[known], systems[known], found)
        results = (
            pearson(scores, means),
            float(rank_correlations(scores[None], means[None])[0]),
            kendall(scores, means),
        )
        rows.append(SystemCorrelation(metric.name, len(found), *results, metric.signature))
    return rows, missing


def _means_of_groups(values: Floats, groups: NDArray[np.str_], names: Sequence[str]) -> Floats:
    """Compute the (k,) means of (n,) values in the k groups of `names`; `groups` has the name of each value's
    group.
    """
    # Floating-point errors must not break the ties of equal means.
    return round_means(np.array([values[groups == name].mean() for name in names]), values)


def score_by_all(
    rated: Ratings, metrics: Iterable[Metric], missing: dict[str, str]
) -> Iterator[tuple[Metric, Floats]]:
    """Score n rated pairs by several metrics; higher scores are always better.

    Args:
        rated: The n rated pairs with their original texts.
        metrics: The metrics.
        missing: A dict to which the reason is added for each metric that cannot score the pairs.

    Yields:
        Each metric that can score the pairs, with its (n,) scores; NaN for a pair without a score.
    """
    for metric in metrics:
        try:
            scores = score_rated_pairs(metric, rated)
        except UnavailableError as error:
            missing[metric.name] = str(error)
            continue
        yield metric, -scores if registry.lower_is_better(metric.name) else scores


def clean_ratings(rated: Ratings) -> Ratings:
    """Clean the texts of rated pairs, so that case, markup and spacing do not affect any metric.

    Comment marks are removed, the texts are converted to lower-case ASCII, and spaces are put around
    punctuation.
    """
    references, candidates = (
        [clean(text) for text in texts] for texts in (rated.references, rated.candidates)
    )
    return replace(rated, references=references, candidates=candidates)


def score_rated_pairs(metric: Metric, rated: Ratings) -> Floats:
    """Score n rated pairs by a metric.

    A metric for texts scores cleaned texts: lower-case ASCII without comment marks. simllm divides texts into
    sentences and then cleans them itself. A metric for code, or a judge, scores the texts as they are. A
    `ColumnMetric` computes nothing; its scores are read from the file of ratings.

    Returns:
        (n,) scores. A metric for code, or a judge, may give NaN to a pair; all other scores are finite.

    Raises:
        UnavailableError: The column of a `ColumnMetric` is missing or incomplete, or pairs lack the language
            or source that a metric for code needs. Or the scores are useless: a score is not finite, all
            scores are equal, or there are fewer than three scores.
    """
    if isinstance(metric, ColumnMetric):
        # A missing column counts as an incomplete one.
        scores = rated.columns.get(metric.column, np.array([np.nan]))
        if np.isnan(scores).any():
            complete = ", ".join(name for name, column in rated.columns.items() if not np.isnan(column).any())
            raise UnavailableError(
                f"{rated.name} has no complete column {metric.column}; it has {complete or 'none'}"
            )
    elif registry.is_code_metric(metric.name):
        scores = _score_code(metric, rated)
    elif registry.is_judge(metric.name):
        scores = metric.score(rated.examples()).values
    elif registry.needs_source(metric.name):
        if not rated.sources:
            raise UnavailableError(f'some pairs of {rated.name} have no text under "code" or "source"')
        scores = metric.score(rated.examples()).values
    else:
        texts = rated if registry.divides_texts(metric.name) else clean_ratings(rated)
        scores = pair_scores(metric, texts.candidates, texts.references)
    known = scores[~np.isnan(scores)] if registry.may_lack_scores(metric.name) else scores
    if not np.isfinite(known).all():
        raise UnavailableError(f"some of its scores of {rated.name} are not finite")
    # A correlation with equal scores is not defined.
    if len(known) < 3 or np.ptp(known) == 0:
        raise UnavailableError(f"it gives all pairs of {rated.name} the same score")
    return scores


def _score_code(metric: Metric, rated: Ratings) -> Floats:
    """Return the (n,) scores of a metric for code, which needs the language and maybe the source of each
    pair.
    """
    needed = {"language": rated.groups.get("language")}
    if registry.needs_source(metric.name):
        needed["source"] = rated.sources
    for key, values in needed.items():
        if not values:
            raise UnavailableError(f'some pairs of {rated.name} have no text under "{key}"')
    return metric.score(rated.examples()).values
