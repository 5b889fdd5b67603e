"""The research questions (RQ) of the SIMLLM paper: how well metrics agree with human ratings of text pairs.

A study answers five research questions:

RQ1: How well does each metric correlate with the ratings?
RQ2: How well do variants of the learned metric (other poolings and similarities) correlate?
RQ3: How strongly do the metrics correlate with each other?
RQ4: How does the correlation grow during the training of the learned metric?
RQ5: How do the correlations differ between languages, systems and text lengths?
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from scipy import stats
from tqdm import tqdm

from simllm.array_types import Floats
from simllm.errors import InputError
from simllm.evaluation import model_variants, ratings
from simllm.evaluation.correlation import score_by_all, warnings_about
from simllm.evaluation.metric_study.report import write_conclusions
from simllm.evaluation.metric_study.results import Group, MetricResult, SetStudy, Study, correlate_groups
from simllm.evaluation.ratings import Ratings
from simllm.io import output_file
from simllm.io.tables import label
from simllm.metrics import registry
from simllm.metrics.interface import Metric, pair_scores
from simllm.stats import correlation
from simllm.stats.agreement import interval_by_rater, rater_agreement
from simllm.stats.correlation import kendall, pairwise_accuracy, pearson, spearman
from simllm.stats.resampling import LEAST_ITEMS
from simllm.stats.significance import holm_of_pairs

QUESTIONS = ("rq1", "rq2", "rq3", "rq4", "rq5")
_LEAST_PAIRS = 3  # for a correlation
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

M = TypeVar("M", Metric, model_variants.TrainedModel)


def run_study(
    rated: Sequence[Path],
    names: Sequence[str] | None = None,
    model: str | os.PathLike[str] | None = None,
    checkpoints: Path | None = None,
    questions: Sequence[str] = QUESTIONS,
    fields: Sequence[str] = (),
) -> Study:
    """Answer the research questions on sets of text pairs with human ratings.

    Args:
        rated: Files of rated pairs (see `simllm.evaluation.ratings`), one for each set.
        names: The names of the metrics; None means all metrics for natural language, and none for code.
        model: The model folder of the metric `simllm`; None means the included model.
        checkpoints: A folder with a model folder for each checkpoint of a training run. Only RQ4 needs it.
        questions: The questions to answer, such as "rq2". RQ1 and RQ3 are always answered.
        fields: The keys of reference, candidate and ratings in the files (see `ratings.load`).

    Raises:
        InputError: A file cannot be read or is given twice, or no metric is available.
    """
    sets = _load_sets(rated, fields)
    # All models are loaded before the first set is scored, so that a wrong folder is found at once.
    trained = model_variants.load_checkpoints(checkpoints) if checkpoints and "rq4" in questions else []
    metrics, missing = registry.load_all(names, model)
    variants = model_variants.load_variants(model) if "rq2" in questions else []
    studies = []
    work = len(sets) * (len(metrics) + len(variants) + len(trained))
    with tqdm(total=work, unit="metric", disable=not sys.stderr.isatty()) as bar:
        for pairs in sets:
            for message in warnings_about(pairs):
                warnings.warn(f"{pairs.name}: {message}", stacklevel=2)
            values, lacking = _score_set(_with_progress(metrics, bar), pairs)
            pairs, values = _with_all_scores(pairs, values)
            # The original texts, because variants and checkpoints are learned metrics, which clean texts
            # themselves.
            scores_of = partial(pair_scores, candidates=pairs.candidates, references=pairs.references)
            of_variants = {metric.name: scores_of(metric) for metric in _with_progress(variants, bar)}
            of_trained = [
                (one.updates, correlate_metric(one.name, scores_of(one.metric), pairs))
                for one in _with_progress(trained, bar)
            ]
            groups = correlate_groups(pairs, values) if "rq5" in questions else []
            studies.append(_study_set(pairs, values, lacking, of_variants, of_trained, groups))
    every = (*metrics, *variants, *(one.metric for one in trained))
    return Study(studies, {metric.name: metric.signature for metric in every}, missing)


def _load_sets(rated: Sequence[Path], fields: Sequence[str]) -> list[Ratings]:
    """Load the sets; those with equal file names are named by their paths."""
    output_file.check_different(rated)
    sets = [ratings.load(file, fields) for file in rated]
    names = [one.name for one in sets]
    return [
        replace(one, name=label(str(file))) if names.count(one.name) > 1 else one
        for one, file in zip(sets, rated, strict=True)
    ]


def _with_progress(metrics: Sequence[M], bar: Any) -> Iterator[M]:
    """Yield the metrics, and show the name of the current one in a progress bar."""
    for metric in metrics:
        bar.set_postfix_str(metric.name)
        yield metric
        bar.update()


def _score_set(metrics: Iterator[Metric], rated: Ratings) -> tuple[dict[str, Floats], dict[str, str]]:
    """Return the (n,) scores of each available metric, and the missing metrics."""
    missing: dict[str, str] = {}
    values = {metric.name: scores for metric, scores in score_by_all(rated, metrics, missing)}
    if not values:
        remedies = "; ".join(f"{name}: {remedy}" for name, remedy in missing.items())
        raise InputError(f"{rated.name}: no metric is left; {remedies}")
    return values, missing


def _with_all_scores(rated: Ratings, values: dict[str, Floats]) -> tuple[Ratings, dict[str, Floats]]:
    """Leave out pairs to which a metric gives no score: the metrics are compared on the same pairs."""
    n = len(rated.values)
    known = np.flatnonzero(~np.isnan(np.stack(list(values.values()))).any(axis=0))
    if len(known) == n:
        return rated, values
    if len(known) < _LEAST_PAIRS:
        raise InputError(f"{rated.name}: {len(known)} pairs have a score by every metric; expected 3")
    lacking = ", ".join(name for name, own in values.items() if np.isnan(own).any())
    message = f"{n - len(known)} of {n} pairs have no score by {lacking}, and are left out"
    warnings.warn(f"{rated.name}: {message}", stacklevel=2)
    return rated.take(known.tolist()), {name: own[known] for name, own in values.items()}


def _study_set(
    rated: Ratings,
    values: dict[str, Floats],
    missing: dict[str, str],
    variants: dict[str, Floats],
    trained: list[tuple[float, MetricResult]],
    groups: list[Group],
) -> SetStudy:
    """Compute the results on one set from the (n,) scores of metrics and variants, by name.

    `trained` has the number of updates and the result of each checkpoint.
    """
    n = len(rated.values)
    results = [correlate_metric(name, scores, rated) for name, scores in values.items()]
    # From here on, all lists and matrices have the metrics in this order.
    results.sort(key=lambda row: -row.spearman)
    rho, ordered = [row.spearman for row in results], [values[row.metric] for row in results]
    # Spearman's rho is Pearson's r of ranks. With one metric, corrcoef gives a number.
    between = np.atleast_2d(np.corrcoef(np.stack([stats.rankdata(scores) for scores in ordered])))
    p = correlation.permutation_p_values(ordered, rated.values)
    corrected, people = holm_of_pairs(p), rater_agreement(rated.raters)
    variant_results = [correlate_metric(name, scores, rated) for name, scores in variants.items()]
    return SetStudy(
        name=rated.name,
        pairs=n,
        agreement=people,
        results=results,
        clusters=correlation.clusters(rho, corrected),
        permutation=p.tolist(),
        williams=[
            [correlation.williams(a, b, between[i, j], n) for j, b in enumerate(rho)]
            for i, a in enumerate(rho)
        ],
        between=between.tolist(),
        variants=variant_results,
        variant_clusters=_clusters(variant_results, list(variants.values()), rated),
        checkpoints=trained,
        groups=groups,
        missing=missing,
        words=write_conclusions(results, corrected, n, people),
    )


def _clusters(results: list[MetricResult], values: list[Floats], rated: Ratings) -> list[int]:
    """Return the ranks of m metrics with (n,) scores, by Holm-corrected permutation tests."""
    if not results:
        return []
    p = holm_of_pairs(correlation.permutation_p_values(values, rated.values))
    return correlation.clusters([row.spearman for row in results], p)


def correlate_metric(name: str, values: Floats, rated: Ratings) -> MetricResult:
    """Compute the correlations between a metric's scores and the human ratings, such as Spearman's rho.

    Args:
        name: The name of the metric.
        values: (n,) scores. If all are equal, the correlations are NaN.
        rated: n rated pairs.
    """
    rho = spearman(values, rated.values)
    # One rater cannot be resampled, and the bootstrap needs some pairs.
    several = rated.raters.shape[1] > 1 and len(values) >= LEAST_ITEMS
    return MetricResult(
        metric=name,
        spearman=rho.rho,
        p_value=rho.p_value,
        low=rho.low,
        high=rho.high,
        by_rater=interval_by_rater(values, rated.raters) if several else None,
        kendall=kendall(values, rated.values),
        pearson=pearson(values, rated.values),
        pairwise_accuracy=pairwise_accuracy(values, rated.values),
        quantiles=np.quantile(values, _QUANTILES).tolist(),
    )
