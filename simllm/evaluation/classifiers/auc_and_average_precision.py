"""AUC and average precision: how well a classifier's scores rank positive items above negative ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from pandas import DataFrame

from simllm.array_types import Ints
from simllm.evaluation.classifiers.brier_and_log_loss import multiclass_brier, multiclass_log_loss
from simllm.evaluation.classifiers.metric_estimate import Estimate, finite, make_estimate
from simllm.evaluation.classifiers.positive_class_score import positive_scores
from simllm.evaluation.classifiers.prediction_files import chances_of
from simllm.stats.delong_auc import area_under_roc, auc_interval


def rank_two_classes(
    rows: DataFrame, gold: Ints, labels: Sequence[str], repeats: float
) -> dict[str, Estimate]:
    """Compute "auc" and "average_precision" from the scores for the positive class (see `positive_scores`).

    `rows` has no unparsed outputs; `gold` (n,) are the true class numbers. Both values are None if no row has
    a score, or if all rows with scores have the same true class.
    """
    from sklearn.metrics import average_precision_score

    scores, _ = positive_scores(rows, labels[0], labels)
    known = ~np.isnan(scores)
    positive = gold[known] == 0
    if not 0 < positive.sum() < len(positive):
        return {"auc": Estimate(None), "average_precision": Estimate(None)}
    folds = rows.loc[known, "fold"].to_numpy()
    precision = float(average_precision_score(positive, scores[known]))
    return {
        "auc": make_estimate(*auc_interval(positive, scores[known], folds, repeats)),
        "average_precision": Estimate(precision),
    }


def rank_classes(
    rows: DataFrame, gold: Ints, labels: Sequence[str]
) -> tuple[dict[str, Estimate], dict[str, float | None]]:
    """Compute the metrics that need a probability for each of three or more classes.

    `rows` has no unparsed outputs; `gold` (n,) are the true class numbers. The second dict has the AUC of
    each class against the rest. Both dicts are empty if no row has probabilities.
    """
    from sklearn.metrics import roc_auc_score

    chances = chances_of(rows, labels)
    if chances is None:
        return {}, {}
    table = chances.to_numpy(float)
    known = ~np.isnan(table).any(axis=1)
    table, gold = table[known], gold[known]
    areas = {}
    for number, label in enumerate(labels):
        own = gold == number
        chance = table[:, number]
        area = area_under_roc(chance[own], chance[~own]) if 0 < own.sum() < len(own) else math.nan
        areas[label] = finite(area)
    present = [area for area in areas.values() if area is not None]
    metrics = {"macro_auc": Estimate(float(np.mean(present)) if present else None)}
    # An AUC over pairs is not defined if a class has no item.
    if len(present) == len(labels):
        # scikit-learn refuses rows that do not add up to 1; ours may be rounded.
        pairs = roc_auc_score(gold, table / table.sum(axis=1, keepdims=True), multi_class="ovo")
        metrics["macro_auc_one_vs_one"] = Estimate(float(pairs))
    metrics["brier"] = Estimate(multiclass_brier(table, gold))
    metrics["log_loss"] = Estimate(multiclass_log_loss(table, gold))
    return metrics, areas
