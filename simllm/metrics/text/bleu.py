"""Sentence BLEU (Papineni et al., 2002), from nltk.

Texts are split at white space, and n-gram counts are not smoothed. The evaluations with which the SIMLLM
paper compares its results compute BLEU in the same way.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simllm.metrics.metric_interface import ScoreFunction


def load(weights: Sequence[float]) -> ScoreFunction:
    """Load sentence BLEU: return a function that scores n candidates, each against its own reference.

    Scores are from 0 to 1.

    Args:
        weights: The weights of the precisions of 1-grams, 2-grams and so on, in their geometric mean. For
            example, (0, 1) uses only the precision of 2-grams.
    """
    from nltk.translate.bleu_score import sentence_bleu

    def score(candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
        pairs = [(c.split(), [r.split()]) for c, r in zip(candidates, references, strict=True)]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="nltk")  # n-gram counts of 0 are expected here
            return np.array([sentence_bleu(r, c, weights=tuple(weights)) for c, r in pairs], float)

    return score
