"""METEOR (Banerjee and Lavie, 2005), from nltk.

METEOR needs the dictionary WordNet, which may come from nltk or from the operating system.
"""

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
    """Return a dict with the path of the dictionary WordNet; METEOR scores depend on its content.

    Returns:
        A dict with one entry, from "wordnet" to the path of WordNet's folder or zip file.

    Raises:
        UnavailableError: WordNet is missing.
    """
    root = find_wordnet()
    return {"wordnet": Path(root.zipfile.filename if hasattr(root, "zipfile") else root)}
