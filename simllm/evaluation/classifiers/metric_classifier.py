"""Metrics as classifiers, which predict whether people find a text acceptable.

The true class of a text is "acceptable" if its mean rating is high enough. The predicted class is
"acceptable" if the metric's score is at least a threshold. For each fold of the texts, the threshold and the
conversion of scores to probabilities are learned on the other folds. A pair is a text and its reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame

from simllm.array_types import Floats
from simllm.errors import InputError
from simllm.evaluation.classifiers.predictions import Predictions, make
from simllm.evaluation.ratings import Ratings
from simllm.metrics import registry
from simllm.metrics.interface import Example, Metric
from simllm.perturb.summaries import lexicon, rewording
from simllm.stats.classification import binary_metrics

POSITIVE, NEGATIVE = "acceptable", "unacceptable"
_SEED = 12345


def classify(
    ratings: Ratings, acceptable: float, metrics: Sequence[Metric], folds: int = 10, perturb: bool = False
) -> Predictions:
    """Predict from each metric's scores whether a text has a mean rating of at least `acceptable`.

    `perturb` adds variants: texts that were edited without a change of meaning. There must be two or more
    folds, and at least as many pairs of either class.
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
    """Yield for each kind of edit its name, the numbers of the pairs it can edit, and these, edited."""
    words, random = lexicon.load(), np.random.default_rng(_SEED)
    for kind, edit in rewording.KINDS.items():
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
    """Yield a table of predictions for each variant; the first is the n originals, with an empty name.

    `gold` (n,) says which originals are acceptable; `parts` has the numbers of the originals in each fold.
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
        if len(np.unique(gold[others][known])) < 2:
            raise InputError(
                f"{metric.name}: fold {number + 1} has no threshold, because only {known.sum()} of the other"
                f" {len(others)} pairs have a score, and these are not of both classes"
            )
        learned.append(_learn(scores[known], gold[others][known]))
    for name, numbers, _ in variants:
        # A variant is in the fold of its original, whose threshold was learned without it.
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
    """Learn a threshold on (n,) scores, and slope and intercept of a logistic regression of the class."""
    from sklearn.linear_model import LogisticRegression

    order = np.argsort(scores)
    ordered, right = scores[order], gold[order]
    # Position i stands for the threshold that has i scores below it; `cells` is (n + 1, 2, 3).
    below = np.concatenate([[0], np.cumsum(right)])
    counts = np.arange(len(right) + 1)
    fn, tn = below, counts - below
    tp, fp = below[-1] - fn, (len(right) - below[-1]) - tn
    zero = np.zeros_like(tp)
    cells = np.stack([np.stack([tp, fn, zero], -1), np.stack([fp, tn, zero], -1)], -2)
    # The ends, where all pairs get the same label, are no thresholds between two scores.
    quality = binary_metrics(cells)["mcc"][1:-1]
    quality[ordered[1:] == ordered[:-1]] = -np.inf  # equal scores get equal labels
    best = int(quality.argmax())
    threshold = float((ordered[best] + ordered[best + 1]) / 2)
    spread = float(scores.std()) or 1.0
    # Standardized, so that the solver converges whatever the scale of the metric; without a penalty.
    fitted = LogisticRegression(C=np.inf).fit((scores[:, None] - scores.mean()) / spread, gold)
    slope = float(fitted.coef_[0, 0]) / spread
    return threshold, slope, float(fitted.intercept_[0]) - slope * float(scores.mean())
