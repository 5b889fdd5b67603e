"""How far a model that is being trained agrees with people, and prefers meaning to words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from simllm.errors import InputError
from simllm.evaluation import contrast, ratings
from simllm.io import files
from simllm.metric import SimLLM
from simllm.perturb.summaries import lexicon
from simllm.perturb.summaries.meaning_changes import change
from simllm.perturb.summaries.rewording import reword
from train.runtime.config import ContrastiveConfig

_WORDS = (4, 20)  # in a comment that is edited


class Agreement:
    """The criterion of the contrastive stage, and what else is written into its log."""

    def __init__(self, config: ContrastiveConfig) -> None:
        self.rated = [ratings.load(Path(dev)) for dev in config.dev]
        self.edited = edited(Path(config.dev_comments), config.seed)
        self.triples = contrast.load()

    def __call__(self, metric: SimLLM) -> tuple[float, dict[str, float]]:
        """The criterion, lower is better, and all figures.

        It is minus the mean of Spearman's correlations on `dev` and of the share of held-out
        comments whose rewording scores higher than a change of their meaning, both by rule.
        Nothing is chosen on the contrast set, which is only written down.
        """

        def score(candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
            return metric.score(candidates, references).values

        figures = {}
        for rated in self.rated:
            values = score(rated.candidates, rated.references)
            figures[f"spearman_{rated.name}"] = float(spearmanr(values, rated.values).statistic)
        figures["edits"] = float(contrast.wins(score, self.edited).mean())
        criterion = -sum(figures.values()) / len(figures)
        for form, accuracy in contrast.by(self.triples.forms, contrast.wins(score, self.triples)).items():
            figures[f"contrast_{form}"] = accuracy
        return criterion, figures


def edited(comments: Path, seed: int, count: int = 500) -> contrast.Triples:
    """Comments with a rewording and a change each."""
    known, random = lexicon.load(held_out=contrast.held_out()), np.random.default_rng(seed)
    texts = [text for _, text in files.lines(comments) if _WORDS[0] <= len(text.split()) <= _WORDS[1]]
    mixed = (texts[i] for i in random.permutation(len(texts)))
    made = ((text, reword(text, known, random), change(text, known, random)) for text in mixed)
    rows = list(islice(((a, b, c[1], c[0]) for a, b, c in made if c and b != a), count))
    if not rows:
        raise InputError(f"{comments}: no comment that can be reworded and changed")
    references, rewordings, changes, kinds = (list(column) for column in zip(*rows, strict=True))
    return contrast.Triples(references, rewordings, changes, kinds, ["edited"] * len(rows))
