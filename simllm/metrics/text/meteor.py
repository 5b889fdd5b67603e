"""METEOR (Banerjee and Lavie, 2005), from nltk; it needs the dictionary WordNet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simllm.metrics.text.readable_texts import TextScorer
from simllm.metrics.text.wordnet_data import find_wordnet, open_wordnet


def load() -> TextScorer:
    """Load METEOR; scores are from 0 to 1. Texts are split into words at white space."""
    from nltk.translate.meteor_score import single_meteor_score

    words = open_wordnet()

    def score(candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
        pairs = zip(candidates, references, strict=True)
        return np.array([single_meteor_score(r.split(), c.split(), wordnet=words) for c, r in pairs], float)

    return TextScorer(score)


def data() -> dict[str, Path]:
    """Return the path of WordNet's folder or zip file."""
    root = find_wordnet()
    return {"wordnet": Path(root.zipfile.filename if hasattr(root, "zipfile") else root)}
