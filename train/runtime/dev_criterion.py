"""The dev criterion: a number that is computed on dev data, to choose the best model of a training run.

Here it is the negative mean of several figures, so lower is better. A saved model has the mean itself in its
provenance, under "dev_criterion"; there, higher is better.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from simllm.errors import InputError
from simllm.evaluation import contrast, ratings
from simllm.evaluation.contrast import deciding_word_pairs
from simllm.io import reading
from simllm.metric import SimLLM
from simllm.perturb.summaries import lexicon
from simllm.perturb.summaries.meaning_changes import change
from simllm.perturb.summaries.rewording import reword

_TRIPLES = 500
_WORDS = (4, 20)  # fewest and most words of a comment that is edited


class DevCriterion:
    """Evaluation of models by the correlation of scores with human ratings, and by accuracies on triples.

    A triple is a text, a rewording, and a text with another meaning. A model is right if it scores the
    rewording higher; a tie is half right. A model with a meaning head has two accuracies: by similarity, and
    by the predicted probability of the same meaning (`same_…`).

    Args:
        dev: Paths of files of text pairs with human ratings.
        dev_comments: A file of cleaned code comments, one per line, which rules edit into triples, or None.
        seed: Seed for choosing comments and for editing them by rule.
        items: Triples of other origin, or None.
    """

    def __init__(
        self, dev: Sequence[str], dev_comments: str | None, seed: int, items: contrast.Triples | None = None
    ) -> None:
        self.rated = dict(zip(_names(dev), [ratings.load(Path(file)) for file in dev], strict=True))
        self.made: dict[str, contrast.Triples] = {}  # key: the name of the accuracy on these triples
        if dev_comments:
            self.made["edits"] = make_edited_triples(Path(dev_comments), seed)
        if items:
            self.made["items"] = items
        # A test set: its accuracies are logged, but do not count in the criterion.
        self.triples = contrast.load()

    def __call__(self, metric: SimLLM) -> tuple[float, dict[str, float]]:
        """Compute the criterion, and all figures by their names; figures without data are left out."""
        figures = {}
        for name, rated in self.rated.items():
            scores = metric.score(rated.candidates, rated.references)
            figures[f"spearman_{name}"] = float(spearmanr(scores.values, rated.values).statistic)
            if scores.graded is not None:
                figures[f"graded_{name}"] = float(spearmanr(scores.graded, rated.values).statistic)
        for name, triples in self.made.items():
            for measure, wins in _wins(metric, triples).items():
                figures[f"{measure}{name}"] = float(wins.mean())
        criterion = -sum(figures.values()) / len(figures)
        for measure, wins in _wins(metric, self.triples).items():
            for form, accuracy in contrast.mean_by_label(self.triples.forms, wins).items():
                figures[f"{measure}contrast_{form}"] = accuracy
        return criterion, figures


def _names(files: Sequence[str]) -> list[str]:
    """Name each file by its file name without ending, or by its whole path if that name is not unique."""
    stems = [Path(file).stem for file in files]
    return [stem if stems.count(stem) == 1 else file for stem, file in zip(stems, files, strict=True)]


def _wins(metric: SimLLM, triples: contrast.Triples) -> dict[str, NDArray[np.float64]]:
    """Return which rewordings win, by similarity (""), and by the probability of equal meaning ("same_")."""
    rewordings, changes = (
        metric.score(texts, triples.references) for texts in (triples.rewordings, triples.changes)
    )
    wins = {"": contrast.compare(rewordings.values, changes.values)}
    if rewordings.same is not None and changes.same is not None:
        wins["same_"] = contrast.compare(rewordings.same, changes.same)
    return wins


def make_edited_triples(comments: Path, seed: int) -> contrast.Triples:
    """Make at most 500 triples of the form "edited" from a file of cleaned comments, one per line.

    Rules edit a comment to make its rewording and its variant with another meaning. InputError: the rules
    cannot edit any comment in both ways.
    """
    # Without the word pairs that decide in the contrast set, which stays a test set.
    words, random = lexicon.load(held_out=deciding_word_pairs()), np.random.default_rng(seed)
    texts = [text for _, text in reading.read_lines(comments) if _WORDS[0] <= len(text.split()) <= _WORDS[1]]
    shuffled = (texts[i] for i in random.permutation(len(texts)))
    # A generator, because editing is slow and only so many triples are needed.
    edits = ((text, reword(text, words, random), change(text, words, random)) for text in shuffled)
    rows = list(islice(((a, b, c[1], c[0]) for a, b, c in edits if c and b != a), _TRIPLES))
    if not rows:
        raise InputError(f"{comments}: no comment that can be reworded and changed")
    references, rewordings, changes, kinds = (list(column) for column in zip(*rows, strict=True))
    return contrast.Triples(references, rewordings, changes, kinds, ["edited"] * len(rows))
