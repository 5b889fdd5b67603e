"""Sentence BLEU, the geometric mean of 1- to 4-gram precision, as nltk computes it.

Texts are split at spaces, and nothing is smoothed: so the evaluations of code
summarization that the paper compares with have it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def score(candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
    """(n,) sentence BLEU in 0..1."""
    from nltk.translate.bleu_score import sentence_bleu

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="nltk")  # a count of 0 is the expected case here
        return np.array(
            [sentence_bleu([r.split()], c.split()) for c, r in zip(candidates, references, strict=True)],
            float,
        )
