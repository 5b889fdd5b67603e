"""How well metrics tell rewordings of a text from changes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from simllm.evaluation import contrast_triples
from simllm.metric import SimLLM
from simllm.metrics.metric_interface import Metric, pair_scores
from simllm.scoring.changed_meaning import SIMILAR
from simllm.scoring.scores import Scores
from simllm.stats.delong_auc import auc_with_covariance
from train.contrastive.meaning_items import MeaningItem, make_triples


def metric_name(metric: str) -> str:
    """Return the name of a metric without its argument: "word-vectors" for "word-vectors=FILE"."""
    return metric.partition("=")[0]


def contrast_accuracies(metric: Metric, triples: contrast_triples.Triples) -> dict[str, dict[str, float]]:
    """Compute a metric's accuracy on triples, by their form and kind of change ("all" is for all kinds)."""
    wins, forms, kinds = (
        contrast_triples.rewording_wins(partial(pair_scores, metric), triples),
        np.array(triples.forms),
        np.array(triples.kinds),
    )
    return {
        form: {
            # A tie counts as half a win.
            "all": float(wins[forms == form].mean()),
            **contrast_triples.mean_by_label(list(kinds[forms == form]), wins[forms == form]),
        }
        for form in dict.fromkeys(triples.forms)
    }


def measure_items(metrics: Sequence[Metric], items: list[MeaningItem]) -> dict[str, Any]:
    """Compute the accuracies of metrics on the triples of meaning items, and the number of "triples"."""
    triples = make_triples(items)
    accuracies = {metric.name: contrast_accuracies(metric, triples)["written"] for metric in metrics}
    figures = {metric_name(name): kinds for name, kinds in accuracies.items()}
    return {"triples": len(triples.references), **figures}


def measure_flags(learned: SimLLM, items: list[MeaningItem]) -> dict[str, Any]:
    """Count how often a model warns, for similar pairs of texts, that the meaning may have changed.

    "rewordings" and "changes" each have the number of pairs that score .4 or more ("similar") and the share
    of these pairs that get the warning ("flagged").
    """
    return _flags(*_score_with_main_text(learned, items))


def measure_unseen_items(learned: SimLLM, items: list[MeaningItem]) -> dict[str, Any]:
    """Measure how well a model tells rewordings from changes, on items on which it was not trained.

    "auc" has the areas under the ROC curve for the score and for the probability of the same meaning: the
    probability that a random rewording gets a higher value than a random change of any item.
    """
    rewordings, changes = _score_with_main_text(learned, items)
    is_rewording = np.arange(len(rewordings.values) + len(changes.values)) < len(rewordings.values)
    auc = {}
    for name, scale in (("simllm", "raw"), ("simllm-same", "same")):
        values = np.concatenate([rewordings.on(scale), changes.on(scale)])
        auc[name] = float(auc_with_covariance(is_rewording, values[None])[0][0])
    return {"items": len(items), "auc": auc, "flags": _flags(rewordings, changes)}


def _score_with_main_text(learned: SimLLM, items: list[MeaningItem]) -> tuple[Scores, Scores]:
    """Score the rewordings of all items, and the changes of all items, against the main texts."""
    rewordings = [(text, item.same[0]) for item in items for text in item.same[1:]]
    changes = [(text, item.same[0]) for item in items for text in item.different]
    first, second = (
        learned.score([text for text, _ in pairs], [main for _, main in pairs])
        for pairs in (rewordings, changes)
    )
    return first, second


def _flags(rewordings: Scores, changes: Scores) -> dict[str, Any]:
    flags = {}
    for name, scores in (("rewordings", rewordings), ("changes", changes)):
        similar = int((scores.values >= SIMILAR).sum())
        flags[name] = {"similar": similar, "flagged": int(scores.changed.sum()) / max(similar, 1)}
    return flags
