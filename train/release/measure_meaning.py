"""Measurements for a model card: how well metrics tell rewordings of a text from texts with another meaning.

Two kinds of test data are used. A text with another meaning is called a change.

- A triple is a text (the reference), one rewording of it, and one change.
- A meaning item is a main text, one or more rewordings of it, and changes.

A model may have a meaning head. This part of the model predicts the probability that two texts have the same
meaning.
"""

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
    """Return the name of a metric without its argument, such as "word-vectors" for "word-vectors=FILE"."""
    return metric.partition("=")[0]


def contrast_accuracies(metric: Metric, triples: contrast_triples.Triples) -> dict[str, dict[str, float]]:
    """Compute the accuracy of a metric on triples, such as those of the contrast set.

    A triple is a reference, a rewording and a change (a text with another meaning). The metric is right if it
    scores the rewording higher than the change. A tie counts as half right.

    Args:
        metric: The metric.
        triples: The triples. Each has a form, such as "balanced" (the rewording and the change share equally
            many words with the reference), and a kind of change, such as "negation".

    Returns:
        For each form, a dictionary of accuracies from 0 to 1. The key "all" has the accuracy on all triples
        of the form. The other keys are the kinds of change, such as "negation".
    """
    wins, forms, kinds = (
        contrast_triples.rewording_wins(partial(pair_scores, metric), triples),
        np.array(triples.forms),
        np.array(triples.kinds),
    )
    return {
        form: {
            "all": float(wins[forms == form].mean()),
            **contrast_triples.mean_by_label(list(kinds[forms == form]), wins[forms == form]),
        }
        for form in dict.fromkeys(triples.forms)
    }


def measure_items(metrics: Sequence[Metric], items: list[MeaningItem]) -> dict[str, Any]:
    """Measure how often metrics score a rewording higher than a text with another meaning.

    Each item has a text, rewordings, and changes (texts with another meaning). `make_triples` makes triples
    of a text, a rewording and a change. A metric scores the rewording and the change against the text. The
    metric is right if the rewording scores higher.

    Args:
        metrics: The metrics.
        items: The items.

    Returns:
        A dictionary. Under "triples", it has the number of triples. Under the name of each metric, it has a
        dictionary of accuracies: on all triples ("all"), and on each kind of change, such as "negation".
    """
    triples = make_triples(items)
    accuracies = {metric.name: contrast_accuracies(metric, triples)["written"] for metric in metrics}
    figures = {metric_name(name): kinds for name, kinds in accuracies.items()}
    return {"triples": len(triples.references), **figures}


def measure_flags(learned: SimLLM, items: list[MeaningItem]) -> dict[str, Any]:
    """Measure how often a model warns, for similar pairs of texts, that the meaning may have changed.

    Each item has a text, rewordings, and changes (texts with another meaning). The text is paired with each
    rewording and each change. A pair is similar if it scores .4 or more. It is flagged if it is similar, but
    the meaning head predicts that the two texts probably differ in meaning.

    Args:
        learned: A model with a meaning head.
        items: The items.

    Returns:
        Two dictionaries, under "rewordings" and "changes". Each has the number of similar pairs of this kind
        ("similar"), and the share of the similar pairs that are flagged ("flagged").
    """
    return _flags(*_score_with_main_text(learned, items))


def measure_unseen_items(learned: SimLLM, items: list[MeaningItem]) -> dict[str, Any]:
    """Measure how well a model tells rewordings from texts with another meaning, on unseen items.

    Unseen items are items on which the model was not trained. Each item has a text, rewordings, and changes
    (texts with another meaning). The text is paired with each rewording and each change. Each pair gets two
    values: the score, and the predicted probability that both texts have the same meaning.

    Args:
        learned: A model with a meaning head, which predicts this probability.
        items: The items.

    Returns:
        A dictionary with three keys:

        - "items": The number of items.
        - "auc": A dictionary with two areas under the ROC curve: for the score ("simllm") and for the
          probability ("simllm-same"). The area is the probability that a random rewording gets a higher value
          than a random change. The rewording and the change may come from different items.
        - "flags": The result of `measure_flags`. It tells how often the model warns, for similar texts, that
          the meaning may have changed.
    """
    rewordings, changes = _score_with_main_text(learned, items)
    is_rewording = np.arange(len(rewordings.values) + len(changes.values)) < len(rewordings.values)
    auc = {}
    for name, scale in (("simllm", "raw"), ("simllm-same", "same")):
        values = np.concatenate([rewordings.on(scale), changes.on(scale)])
        auc[name] = float(auc_with_covariance(is_rewording, values[None])[0][0])
    return {"items": len(items), "auc": auc, "flags": _flags(rewordings, changes)}


def _score_with_main_text(learned: SimLLM, items: list[MeaningItem]) -> tuple[Scores, Scores]:
    """Score rewordings of a text, and texts with another meaning, against this text.

    Each item has a main text, rewordings, and changes (texts with another meaning). The model scores all
    rewordings and all changes of an item against the item's main text.

    Returns:
        The scores of the rewordings of all items, and the scores of the changes of all items.
    """
    rewordings = [(text, item.same[0]) for item in items for text in item.same[1:]]
    changes = [(text, item.same[0]) for item in items for text in item.different]
    first, second = (
        learned.score([text for text, _ in pairs], [main for _, main in pairs])
        for pairs in (rewordings, changes)
    )
    return first, second


def _flags(rewordings: Scores, changes: Scores) -> dict[str, Any]:
    """Count similar pairs of texts, and compute the share that the model flags.

    A pair is similar if it scores .4 or more. A flag says that the meaning may have changed.

    Args:
        rewordings: The model's results for pairs of a text and its rewording: scores and flags.
        changes: The model's results for pairs of a text and a text with another meaning: scores and flags.

    Returns:
        Two dictionaries, under "rewordings" and "changes". Each has the number of similar pairs of this kind
        ("similar"), and the share of the similar pairs that are flagged ("flagged").
    """
    flags = {}
    for name, scores in (("rewordings", rewordings), ("changes", changes)):
        similar = int((scores.values >= SIMILAR).sum())
        flags[name] = {"similar": similar, "flagged": int(scores.changed.sum()) / max(similar, 1)}
    return flags
