"""Jaccard similarity of two sets of words: shared words divided by all words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simllm.metrics.text import ScoreFunction


def load() -> ScoreFunction:
    """Return the scoring function; scores are 0..1, and 1 for two empty texts."""
    return score


def score(candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
    """Return the (n,) Jaccard similarities of n pairs."""
    pairs = [(set(c.split()), set(r.split())) for c, r in zip(candidates, references, strict=True)]
    return np.array([len(c & r) / len(c | r) if c | r else 1.0 for c, r in pairs], float)
