"""The study of the paper: agreement of metrics with people on several rated sets.

RQ1: all metrics on all sets. RQ2: the variants of simllm. RQ3: agreement between the metrics. RQ4:
training time. RQ5: parts by language, by system and by length. A study is plain data, so that the
JSON file holds everything that the page shows.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from tqdm import tqdm

from simllm.errors import InputError
from simllm.evaluation import model_variants, ratings
from simllm.evaluation.conclusions import in_words
from simllm.evaluation.human_correlation import cleaned, scores
from simllm.evaluation.labels import label
from simllm.evaluation.ratings import Ratings
from simllm.evaluation.study_groups import Group, groups
from simllm.evaluation.study_results import Result, SetStudy, Study
from simllm.io.files import real
from simllm.metrics import registry
from simllm.metrics.protocol import Metric, pair_scores
from simllm.metrics.text import UnavailableError
from simllm.stats import significance
from simllm.stats.correlation import interval_by_rater, kendall, pairwise_accuracy, pearson, spearman
from simllm.stats.rater_agreement import agreement

QUESTIONS = ("rq1", "rq2", "rq3", "rq4", "rq5")
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

Floats = NDArray[np.float64]
M = TypeVar("M", Metric, model_variants.Trained)


def study(
    rated: Sequence[Path],
    names: Sequence[str] | None = None,
    model: str | os.PathLike[str] | None = None,
    checkpoints: Path | None = None,
    questions: Sequence[str] = QUESTIONS,
) -> Study:
    """Answer the questions on every rated set; raise InputError for bad input.

    RQ1 and RQ3 share their numbers, and are always answered.
    """
    sets = [cleaned(one) for one in _named(rated)]
    trained = model_variants.checkpoints(checkpoints) if checkpoints and "rq4" in questions else []
    found, missing = registry.load_all(registry.names() if names is None else names, model)
    nine = model_variants.variants(model) if "rq2" in questions else []
    studies = []
    work = len(sets) * (len(found) + len(nine) + len(trained))
    with tqdm(total=work, unit="metric", disable=not sys.stderr.isatty()) as bar:
        for pairs in sets:
            scores_of = partial(pair_scores, candidates=pairs.candidates, references=pairs.references)
            values, lacking = _values(_shown(found, bar), pairs)
            studies.append(
                _of_set(
                    pairs,
                    values,
                    lacking,
                    {metric.name: scores_of(metric) for metric in _shown(nine, bar)},
                    [
                        (
                            m.updates,
                            result(m.name, pair_scores(m.metric, pairs.candidates, pairs.references), pairs),
                        )
                        for m in _shown(trained, bar)
                    ],
                    groups(pairs, values) if "rq5" in questions else [],
                )
            )
    return Study(
        studies,
        {metric.name: metric.signature for metric in (*found, *nine, *(model.metric for model in trained))},
        missing,
    )


def _named(rated: Sequence[Path]) -> list[Ratings]:
    """Load the sets; sets of the same name are called by their paths."""
    for number, file in enumerate(rated):
        if real(file) in map(real, rated[:number]):
            raise InputError(f"{file}: given twice")
    sets = [ratings.load(file) for file in rated]
    names = [one.name for one in sets]
    return [
        replace(one, name=label(str(file))) if names.count(one.name) > 1 else one
        for one, file in zip(sets, rated, strict=True)
    ]


def _shown(found: Sequence[M], bar: Any) -> Iterator[M]:
    """Yield the metrics, showing the name of each on the bar."""
    for metric in found:
        bar.set_postfix_str(metric.name)
        yield metric
        bar.update()


def _values(found: Iterator[Metric], rated: Ratings) -> tuple[dict[str, Floats], dict[str, str]]:
    """Score the set by each metric; for metrics without scores, return what to do about it."""
    values, missing = {}, {}
    for metric in found:
        try:
            values[metric.name] = scores(metric, rated)
        except UnavailableError as error:
            missing[metric.name] = str(error)
    if not values:
        said = "; ".join(f"{name}: {remedy}" for name, remedy in missing.items())
        raise InputError(f"{rated.name}: no metric is left; {said}")
    return values, missing


def _of_set(
    rated: Ratings,
    values: dict[str, Floats],
    missing: dict[str, str],
    nine: dict[str, Floats],
    trained: list[tuple[float, Result]],
    parts: list[Group],
) -> SetStudy:
    n = len(rated.values)
    results = [result(name, of, rated) for name, of in values.items()]
    results.sort(key=lambda row: -row.spearman)
    rho, ordered = [row.spearman for row in results], [values[row.metric] for row in results]
    between = np.atleast_2d(np.corrcoef(np.stack([stats.rankdata(of) for of in ordered])))
    p = significance.permutation(ordered, rated.values)
    corrected, people = significance.holm(p), agreement(rated.raters)
    variants_ = [result(name, of, rated) for name, of in nine.items()]
    return SetStudy(
        name=rated.name,
        pairs=n,
        agreement=people,
        results=results,
        clusters=significance.clusters(rho, corrected),
        permutation=p.tolist(),
        williams=[
            [significance.williams(a, b, between[i, j], n) for j, b in enumerate(rho)]
            for i, a in enumerate(rho)
        ],
        between=between.tolist(),
        variants=variants_,
        variant_clusters=_clusters(variants_, list(nine.values()), rated),
        checkpoints=trained,
        groups=parts,
        missing=missing,
        words=in_words(results, corrected, n, people),
    )


def _clusters(results: list[Result], values: list[Floats], rated: Ratings) -> list[int]:
    if not results:
        return []
    p = significance.holm(significance.permutation(values, rated.values))
    return significance.clusters([row.spearman for row in results], p)


def result(name: str, values: Floats, rated: Ratings) -> Result:
    """Compute all figures of one metric's (n,) scores; correlations of constant scores are NaN."""
    rho = spearman(values, rated.values)
    several = rated.raters.shape[1] > 1
    return Result(
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
