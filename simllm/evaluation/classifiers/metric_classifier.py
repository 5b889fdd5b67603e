"""Metrics as classifiers, which predict whether people find a text acceptable.

The true class of a text is "acceptable" if its mean rating is high enough. The predicted class is
"acceptable" if the metric's score is at least a threshold. For each fold of the texts, the threshold and the
conversion of scores to probabilities are learned on the other folds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame

from simllm.array_types import Floats
from simllm.errors import InputError
from simllm.evaluation.classifiers.prediction_files import Predictions, make
from simllm.evaluation.ratings import Ratings
from simllm.metrics import registry
from simllm.metrics.metric_interface import Example, Metric
from simllm.perturb.summaries import lexicon, meaning_preserving_edits
from simllm.stats.confusion_matrix_metrics import binary_metrics

POSITIVE, NEGATIVE = "acceptable", "unacceptable"
_SEED = 12345


def classify(
    ratings: Ratings, acceptable: float, metrics: Sequence[Metric], folds: int = 10, perturb: bool = False
) -> Predictions:
    """Predict from each metric's scores whether people find texts (candidates) acceptable.

    Each fold is predicted with a threshold that is learned on the other folds (cross-validation).

    Args:
        ratings: n pairs of candidate and reference, with human ratings.
        acceptable: A candidate is acceptable if its mean rating is at least this value.
        metrics: The metrics.
        folds: The number of folds for cross-validation.
        perturb: Whether to predict the classes of variants, too. A variant is a candidate that was edited
            without a change of meaning.

    Returns:
        The predictions. For each metric there is a row for each pair, and a row for each variant. A row has
        the fold, the true class, the predicted class, and the predicted probability of "acceptable". The
        predicted class is None if the metric gives no score.

    Raises:
        InputError: There are fewer than two folds, or more folds than acceptable or unacceptable pairs.
    """
    from sklearn.model_selection import StratifiedKFold

    gold = ratings.values >= acceptable
    least = int(min(gold.sum(), (~gold).sum()))
    if folds < 2 or least < folds:
        raise InputError(
            f"{int(gold.sum())} of {len(gold)} pairs have a mean rating of {acceptable:g} or more; "
            f"{folds} folds need 2 folds or more, and as many pairs of each class"
        )
    examples = ratings.examples()
    variants = [("", np.arange(len(examples)), examples)]
    if perturb:
        variants += _variants(examples)
    splitter = StratifiedKFold(folds, shuffle=True, random_state=_SEED)
    parts = [test for _, test in splitter.split(gold, gold)]
    return make(
        row
        for metric in metrics
        for row in _predict(metric, variants, gold, parts)
    )  # fmt: skip


def _variants(examples: Sequence[Example]) -> Iterator[tuple[str, NDArray[np.int_], list[Example]]]:
    """Copy pairs of candidate and reference, and edit the candidates without changing their meaning.

    There are several kinds of edit, such as replacing a word by a synonym. Some candidates cannot be edited
    in every way; for example, they have no word with a synonym.

    Args:
        examples: The pairs of candidate and reference.

    Yields:
        A tuple for each kind of edit: its name, such as "synonym"; the indices of the pairs whose candidates
        can be edited in this way; and these pairs with the edited candidates. A kind of edit is left out if
        no candidate can be edited in this way.
    """
    words, random = lexicon.load(), np.random.default_rng(_SEED)
    for kind, edit in meaning_preserving_edits.KINDS.items():
        numbers, edited = [], []
        for number, example in enumerate(examples):
            options = [text for text in dict.fromkeys(edit(example.candidate, words, random)) if text]
            options = [text for text in options if text != example.candidate]
            if options:
                chosen = options[random.integers(len(options))]
                numbers.append(number)
                edited.append(Example(chosen, example.reference, example.source, example.language))
        if numbers:
            yield kind, np.array(numbers), edited


def _predict(
    metric: Metric,
    variants: Sequence[tuple[str, NDArray[np.int_], list[Example]]],
    gold: NDArray[np.bool_],
    parts: Sequence[NDArray[np.int_]],
) -> Iterator[DataFrame]:
    """Predict from one metric's scores which pairs of candidate and reference are acceptable.

    Original pairs and edited copies of them are classified. For each fold, a threshold is learned from the
    original pairs of the other folds. An edited copy is in the fold of its original.

    Args:
        metric: The metric.
        variants: The original pairs and the edited pairs, as tuples. The first tuple has an empty name, the
            indices 0 to n - 1, and the n original pairs. Each further tuple has the name of a kind of edit,
            the indices of the originals that were edited in this way, and the edited pairs.
        gold: (n,) true classes of the original pairs: True if the pair is acceptable. An edited pair has the
            class of its original.
        parts: For each fold of the cross-validation, the indices of its original pairs.

    Yields:
        A table of predictions for each element of `variants`.
    """
    sign = -1.0 if registry.lower_is_better(metric.name) else 1.0
    scored = {name: sign * np.asarray(metric.score(examples).values, float) for name, _, examples in variants}
    fold_of = np.empty(len(gold), int)
    learned = []
    for number, test in enumerate(parts):
        fold_of[test] = number
        others = np.setdiff1d(np.arange(len(gold)), test)
        scores = scored[""][others]
        known = ~np.isnan(scores)
        learned.append(_learn(scores[known], gold[others][known]))
    for name, numbers, _ in variants:
        values, folds = scored[name], fold_of[numbers]
        thresholds, slopes, intercepts = (np.array(each)[folds] for each in zip(*learned, strict=True))
        labels = np.where(values >= thresholds, POSITIVE, NEGATIVE).astype(object)
        labels[np.isnan(values)] = None  # without a score there is no answer
        yield DataFrame(
            {
                "classifier": metric.name,
                "split": "test",
                "fold": (folds + 1).astype(str),
                "variant": name,
                "item": (numbers + 1).astype(str),
                "gold": np.where(gold[numbers], POSITIVE, NEGATIVE),
                "predicted": labels,
                "probability": 1 / (1 + np.exp(-(slopes * values + intercepts))),
            }
        )


def _learn(scores: Floats, gold: NDArray[np.bool_]) -> tuple[float, float, float]:
    """Learn to predict from a metric's score whether a pair of texts is acceptable.

    Args:
        scores: (n,) scores of the pairs.
        gold: (n,) whether each pair is acceptable.

    Returns:
        The threshold, and the slope and the intercept of a logistic regression of the class on the score. A
        pair is predicted acceptable if its score is at least the threshold. The threshold lies half-way
        between two neighbouring scores, where the MCC (Matthews' correlation coefficient) is highest.
    """
    from sklearn.linear_model import LogisticRegression

    order = np.argsort(scores)
    ordered, right = scores[order], gold[order]
    below = np.concatenate([[0], np.cumsum(right)])
    counts = np.arange(len(right) + 1)
    fn, tn = below, counts - below
    tp, fp = below[-1] - fn, (len(right) - below[-1]) - tn
    zero = np.zeros_like(tp)
    cells = np.stack([np.stack([tp, fn, zero], -1), np.stack([fp, tn, zero], -1)], -2)
    quality = binary_metrics(cells)["mcc"][1:-1]
    quality[ordered[1:] == ordered[:-1]] = -np.inf  # equal scores get equal labels
    best = int(quality.argmax())
    threshold = float((ordered[best] + ordered[best + 1]) / 2)
    spread = float(scores.std()) or 1.0
    fitted = LogisticRegression(C=np.inf).fit((scores[:, None] - scores.mean()) / spread, gold)
    slope = float(fitted.coef_[0, 0]) / spread
    return threshold, slope, float(fitted.intercept_[0]) - slope * float(scores.mean())
