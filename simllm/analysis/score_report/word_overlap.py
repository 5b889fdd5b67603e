"""Word overlap of two texts: the share of their distinct words that are in both texts (Jaccard index).

The module also compares the rank of each text pair by word overlap with its rank by score. A large difference
may point to a wrong score. The report's HTML page marks the words of a text that the other text of the pair
lacks. The script of the page splits and compares words in the same way as this module.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from simllm.array_types import Floats

# JavaScript's white space: the script of the page splits texts there.
_SPACE = re.compile(r"[\t\n\v\f\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]+")


def word_overlap(candidates: Sequence[str], references: Sequence[str]) -> Floats:
    """Compute the Jaccard index of the words of each candidate and its reference.

    The index is the number of different words that are in both texts, divided by the number of different
    words that are in at least one of them. Upper case and punctuation are ignored. Two texts without words
    have the index 1.

    Args:
        candidates: n texts.
        references: n texts.

    Returns:
        (n,) indices, from 0 to 1.
    """
    pairs = [(_words(a), _words(b)) for a, b in zip(candidates, references, strict=True)]
    return np.array([len(a & b) / len(a | b) if a | b else 1.0 for a, b in pairs], float)


def disagreement(overlap: Floats, scores: Floats) -> Floats:
    """Compute how much the word overlap of n text pairs disagrees with their scores.

    The pairs are ranked twice: by word overlap, from the smallest to the largest, and by score, from the
    worst to the best. The disagreement of a pair is its rank by overlap minus its rank by score, divided by
    n. A value near 1 means that candidate and reference share many words, but the score is bad. A value near
    -1 means that they share few words, but the score is good.

    Args:
        overlap: (n,) word overlaps.
        scores: (n,) scores, where higher is better.

    Returns:
        (n,) disagreements, from -1 to 1.
    """
    return _rank(overlap) - _rank(scores)


def _rank(values: Floats) -> Floats:
    """Return the (n,) ranks of n values, divided by n; equal values get their mean rank."""
    from scipy.stats import rankdata

    shares: Floats = rankdata(values) / len(values)
    return shares


def _words(text: str) -> set[str]:
    """Return the different words of a text, in lower case and without punctuation."""
    return {_normal(part) for part in _SPACE.split(text)} - {""}


@lru_cache(maxsize=100_000)
def _normal(word: str) -> str:
    """Convert a word to lower case and keep only its letters, combining marks and digits."""
    return "".join(character for character in word.lower() if unicodedata.category(character)[0] in "LMN")
