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
    """Compute the AUC and the average precision of a classifier with two classes.

    Both metrics rank the predictions by their score for the positive class. The score is a probability, or
    another number that the classifier gives (see `positive_scores`).

    Args:
        rows: n predictions (rows of `Predictions.rows`), without outputs that could not be parsed.
        gold: (n,) indices of the true classes in `labels`.
        labels: The classes; the positive one is the first.
        repeats: The mean number of predictions per item; above 1 if items have several predictions (runs).
            The interval of the AUC is then wider, because predictions for the same item are not independent.

    Returns:
        The two metrics, under "auc" and "average_precision". The value of both is None if no prediction has a
        score, or if all items whose predictions have scores are of the same class.
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
    """Compute the metrics that need a probability for each class, for three or more classes.

    Args:
        rows: n predictions (rows of `Predictions.rows`), without outputs that could not be parsed.
            Predictions without probabilities are left out.
        gold: (n,) indices of the true classes in `labels`.
        labels: The k classes.

    Returns:
        Two dicts, both empty if no prediction has probabilities. The first has metrics by name: the AUC
        averaged over classes, the AUC averaged over pairs of classes, the Brier score, and the log loss. The
        second has, for each class, the AUC of this class against the rest; None if undefined.
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
    if len(present) == len(labels):
        pairs = roc_auc_score(gold, table / table.sum(axis=1, keepdims=True), multi_class="ovo")
        metrics["macro_auc_one_vs_one"] = Estimate(float(pairs))
    metrics["brier"] = Estimate(multiclass_brier(table, gold))
    metrics["log_loss"] = Estimate(multiclass_log_loss(table, gold))
    return metrics, areas
