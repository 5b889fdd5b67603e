"""The dev criterion: a number that is computed on dev data, to choose the best model of a training run.

In this module, the dev criterion is the negative mean of several figures, so a lower value is better. A saved
model has the mean itself in its provenance, under "dev_criterion". There, a higher value is better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

_WORDS = (4, 20)  # fewest and most words of a comment that is edited


class DevCriterion:
    """Evaluation of models on dev data, to choose the best model of a training run.

    Two kinds of figures are measured for each model: how well its scores correlate with human ratings, and
    how often it scores a rewording of a text higher than a text with another meaning. The dev criterion is
    the negative mean of the figures on dev data, so lower is better. The model is also measured on simllm's
    contrast set. This is a test set, so it does not count in the criterion.

    Args:
        dev: Paths of files of text pairs with human ratings.
        dev_comments: A file of cleaned code comments, one per line. Rules make a rewording and a text with
            another meaning from each comment. None: the criterion uses no comments.
        seed: Seed for choosing comments and for editing them by rule.
        items: Triples of a text, a rewording and a text with another meaning; None: the criterion uses none.
    """

    def __init__(
        self,
        dev: Sequence[str],
        dev_comments: str | None,
        seed: int,
        items: contrast.Triples | None = None,
    ) -> None:
        self.rated = dict(zip(_names(dev), [ratings.load(Path(file)) for file in dev], strict=True))
        self.made: dict[str, contrast.Triples] = {}  # key: the name of the accuracy on these triples
        if dev_comments:
            self.made["edits"] = make_edited_triples(Path(dev_comments), seed)
        if items:
            self.made["items"] = items
        self.triples = contrast.load()

    def __call__(self, metric: SimLLM) -> tuple[float, dict[str, float]]:
        """Measure a model on dev data, and compute the dev criterion from the results.

        Some of the data are triples: a text, a rewording, and a text with another meaning. The model scores
        the similarity of the first text to each of the other two. It is right if the rewording scores higher.
        A tie counts as half right.

        Figures without data are left out. The criterion is the negative mean of the others, so lower is
        better. The figures are:

        - for each file of text pairs with human ratings, the Spearman correlation between scores and ratings;
        - the accuracy on triples from code comments: rules edit a comment to make the two other texts;
        - the accuracy on triples from files that list rewordings of a text, and texts with other meanings;
        - if the model has a meaning head, the same two accuracies with the head's output as the score: the
          predicted probability that two texts have the same meaning.

        The accuracy on simllm's contrast set is also computed. The contrast set is a test set of triples, so
        it does not count in the criterion.

        Args:
            metric: The model.

        Returns:
            The criterion, and a dict from names to all figures, including the accuracies on the contrast
            set.
        """
        figures = {}
        for name, rated in self.rated.items():
            values = metric.score(rated.candidates, rated.references).values
            figures[f"spearman_{name}"] = float(spearmanr(values, rated.values).statistic)
        measures = [""] + (["same_"] if metric.head else [])
        for name, triples in self.made.items():
            for measure in measures:
                wins = contrast.rewording_wins(_score_by(metric, measure), triples)
                figures[f"{measure}{name}"] = float(wins.mean())
        criterion = -sum(figures.values()) / len(figures)
        for measure in measures:
            wins = contrast.rewording_wins(_score_by(metric, measure), self.triples)
            for form, accuracy in contrast.mean_by_label(self.triples.forms, wins).items():
                figures[f"{measure}contrast_{form}"] = accuracy
        return criterion, figures


def _names(files: Sequence[str]) -> list[str]:
    """Name each file by its file name without ending, or by its whole path if that name is not unique."""
    stems = [Path(file).stem for file in files]
    return [stem if stems.count(stem) == 1 else file for stem, file in zip(stems, files, strict=True)]


def _score_by(metric: SimLLM, measure: str) -> Callable[[Sequence[str], Sequence[str]], NDArray[np.float64]]:
    """Return a function that scores text pairs by similarity, or by the probability of equal meaning.

    The function takes n candidates and n references, and returns (n,) scores.

    Args:
        metric: The metric that computes the scores.
        measure: If it is "", the score is the similarity of candidate and reference. If it is "same_", the
            score is the predicted probability that candidate and reference have the same meaning. The part
            of a model that predicts this probability is called the meaning head. A metric without a meaning
            head always gives the similarity.
    """

    def score(candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
        scores = metric.score(candidates, references)
        return scores.same if measure and scores.same is not None else scores.values

    return score


def make_edited_triples(comments: Path, seed: int, count: int = 500) -> contrast.Triples:
    """Make evaluation triples from comments: a comment, a rewording, and a variant with another meaning.

    Rules edit the comment to make the rewording and the variant.

    Args:
        comments: A file of cleaned comments, one per line.
        seed: Seed for choosing and editing comments.
        count: The largest number of triples.

    Returns:
        The triples. The comments are their references, with which the two other texts are compared. The form
        of each triple (`Triples.forms`, the group by which results are averaged) is "edited".

    Raises:
        InputError: There is no comment that the rules can both reword and change in meaning.
    """
    words, random = lexicon.load(held_out=deciding_word_pairs()), np.random.default_rng(seed)
    texts = [text for _, text in reading.read_lines(comments) if _WORDS[0] <= len(text.split()) <= _WORDS[1]]
    shuffled = (texts[i] for i in random.permutation(len(texts)))
    edits = ((text, reword(text, words, random), change(text, words, random)) for text in shuffled)
    rows = list(islice(((a, b, c[1], c[0]) for a, b, c in edits if c and b != a), count))
    if not rows:
        raise InputError(f"{comments}: no comment that can be reworded and changed")
    references, rewordings, changes, kinds = (list(column) for column in zip(*rows, strict=True))
    return contrast.Triples(references, rewordings, changes, kinds, ["edited"] * len(rows))
