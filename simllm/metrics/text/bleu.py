"""Sentence BLEU (Papineni et al., 2002): without smoothing from nltk, and smoothed from sacrebleu.

Texts are split at white space. The evaluations with which the SIMLLM paper compares its results compute BLEU
without smoothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simllm.metrics.text.readable_texts import TextScorer

_ORDER = 4
_ZERO = f"share no {_ORDER} consecutive words, so their BLEU is 0; bleu-smoothed tells them apart"


def load(weights: Sequence[float]) -> TextScorer:
    """Load sentence BLEU without smoothing; scores are from 0 to 1.

    `weights` are the exponents of the precisions of 1-grams, 2-grams and so on in their geometric mean: (0,
    1) uses only the precision of 2-grams.
    """
    from nltk.translate.bleu_score import sentence_bleu

    def score(candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
        pairs = [(c.split(), [r.split()]) for c, r in zip(candidates, references, strict=True)]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="nltk")  # n-gram counts of 0 are expected here
            # Without a common 4-gram, nltk returns a number below 1e-76 instead of 0. The number is kept,
            # because the published correlations rank such pairs by these numbers.
            return np.array([sentence_bleu(r, c, weights=tuple(weights)) for c, r in pairs], float)

    order = len(weights)
    return TextScorer(
        score,
        lambda text: len(text.split()) >= order,
        f"of fewer than {order} words" if order > 1 else "without words",
        _ZERO if weights[0] and order == _ORDER else "",
    )


def load_smoothed() -> TextScorer:
    """Load the sentence BLEU of sacrebleu, which ends at the candidate's longest n-grams; from 0 to 1."""
    from sacrebleu.metrics.bleu import BLEU

    bleu = BLEU(tokenize="none", effective_order=True)  # "none" splits at white space

    def score(candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
        pairs = zip(candidates, references, strict=True)
        return np.array([bleu.sentence_score(c, [r]).score / 100 for c, r in pairs], float)

    return TextScorer(score)
