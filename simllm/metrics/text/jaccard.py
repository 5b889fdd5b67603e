"""Jaccard similarity: intersection over union of the sets of words in two texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simllm.metrics.text.readable_texts import TextScorer


def load() -> TextScorer:
    """Load the Jaccard similarity; scores are from 0 to 1."""
    return TextScorer(score)


def score(candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
    """Compute the (n,) Jaccard similarities of n candidates and their references; two empty texts have 1."""
    pairs = [(set(c.split()), set(r.split())) for c, r in zip(candidates, references, strict=True)]
    return np.array([len(c & r) / len(c | r) if c | r else 1.0 for c, r in pairs], float)
