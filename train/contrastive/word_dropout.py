"""Word dropout: random removal of words, so that two copies of a text differ."""

from __future__ import annotations

import numpy as np


def drop_words(text: str, share: float, random: np.random.Generator) -> str:
    """Remove each word of a text with probability `share`, but leave at least one word."""
    if not share:
        return text
    words = text.split()
    kept = [word for word, draw in zip(words, random.random(len(words)), strict=True) if draw >= share]
    return " ".join(kept) or words[random.integers(len(words))]
