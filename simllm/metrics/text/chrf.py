"""chrF (Popović, 2015): F2 score of character n-grams, for n from 1 to 6, computed by sacrebleu."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simllm.metrics.text.readable_texts import TextScorer


def load() -> TextScorer:
    """Load chrF; scores are from 0 to 1."""
    from sacrebleu.metrics.chrf import CHRF

    chrf = CHRF()

    def score(candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
        pairs = zip(candidates, references, strict=True)
        return np.array([chrf.sentence_score(c, [r]).score / 100 for c, r in pairs], float)

    return TextScorer(score)
