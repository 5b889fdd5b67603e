"""Cosine of tf-idf vectors, by scikit-learn.

Document frequencies are those of the two texts themselves: so Haque et al. (2022) have it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simllm.metrics.text import Score


def load() -> Score:
    """Return the function that scores in 0..1; two texts without any word of two letters have 0."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    def cosine(candidate: str, reference: str) -> float:
        vectorizer = TfidfVectorizer()
        if not any(map(vectorizer.build_analyzer(), (candidate, reference))):
            return 0.0
        vectors = vectorizer.fit_transform([candidate, reference])
        return float((vectors[0] @ vectors[1].T).sum())

    def score(candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
        return np.array([cosine(c, r) for c, r in zip(candidates, references, strict=True)], float)

    return score
