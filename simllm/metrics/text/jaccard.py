"""Jaccard similarity of the two sets of words: shared words by all words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simllm.metrics.text import Score


def load() -> Score:
    """Return the function that scores in 0..1; two empty texts have 1."""
    return score


def score(candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
    """(n,) Jaccard similarities."""
    pairs = [(set(c.split()), set(r.split())) for c, r in zip(candidates, references, strict=True)]
    return np.array([len(c & r) / len(c | r) if c | r else 1.0 for c, r in pairs], float)
