"""ROUGE-1, ROUGE-2 and ROUGE-L (Lin, 2004) on stemmed words, from Google's package rouge-score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simllm.metrics.text.readable_texts import TextScorer

WORDS = "of Latin letters or digits"
AT_LEAST = {1: "without words", 2: "with fewer than two words"}


def load(kind: str) -> TextScorer:
    """Load ROUGE of a kind: `rouge1`, `rouge2` or `rougeL`; scores are F1, from 0 to 1."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer([kind], use_stemmer=True)

    def score(candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
        pairs = zip(candidates, references, strict=True)
        return np.array([scorer.score(r, c)[kind].fmeasure for c, r in pairs], float)

    needed = 2 if kind == "rouge2" else 1
    # The scorer's own tokenizer, so that both always read the same words.
    tokenize = scorer._tokenizer.tokenize
    return TextScorer(score, lambda text: len(tokenize(text)) >= needed, f"{AT_LEAST[needed]} {WORDS}")
