"""Sentence BLEU as nltk computes it (Papineni et al., 2002).

Texts are split at spaces, and nothing is smoothed: so the evaluations of code summarization
that the paper compares with have it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simllm.metrics.text import Score


def load(weights: Sequence[float]) -> Score:
    """Return the function that scores by the weighted geometric mean of n-gram precisions, in 0..1."""
    from nltk.translate.bleu_score import sentence_bleu

    def score(candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
        pairs = [(c.split(), [r.split()]) for c, r in zip(candidates, references, strict=True)]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="nltk")  # a count of 0 is the expected case here
            return np.array([sentence_bleu(r, c, weights=tuple(weights)) for c, r in pairs], float)

    return score
