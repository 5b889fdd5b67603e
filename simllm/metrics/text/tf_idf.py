"""Cosine of the tf-idf vectors of two texts, computed by scikit-learn.

There is no corpus: document frequencies are counted in the two texts that are compared (as in Haque et al.,
2022).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simllm.metrics.text.readable_texts import TextScorer


def load() -> TextScorer:
    """Load the tf-idf metric; scores are from 0 to 1. Words of one letter are ignored."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer().build_analyzer()

    def cosine(candidate: str, reference: str) -> float:
        vectorizer = TfidfVectorizer()
        if not words(candidate) and not words(reference):
            return 0.0
        vectors = vectorizer.fit_transform([candidate, reference])
        return float((vectors[0] @ vectors[1].T).sum())

    def score(candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
        return np.array([cosine(c, r) for c, r in zip(candidates, references, strict=True)], float)

    return TextScorer(score, lambda text: bool(words(text)), "without words of two or more letters")
