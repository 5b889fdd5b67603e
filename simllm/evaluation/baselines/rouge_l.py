"""ROUGE-L: F1 of the longest common subsequence of stemmed words, by Google's rouge-score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def score(candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
    """(n,) ROUGE-L F1 in 0..1."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeL"], use_stemmer=True)
    pairs = zip(candidates, references, strict=True)
    return np.array([scorer.score(r, c)["rougeL"].fmeasure for c, r in pairs], float)
