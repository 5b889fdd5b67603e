"""Word overlap of two texts: the share of their distinct words that are in both texts (Jaccard index).

The script of the report's page, which marks words that the other text lacks, splits and compares words in the
same way as this module.
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
    """Compute the (n,) Jaccard indices of the words of n candidates and their references, from 0 to 1.

    Upper case and punctuation are ignored. Two texts without words have the index 1.
    """
    pairs = [(_words(a), _words(b)) for a, b in zip(candidates, references, strict=True)]
    return np.array([len(a & b) / len(a | b) if a | b else 1.0 for a, b in pairs], float)


def disagreement(overlap: Floats, scores: Floats) -> Floats:
    """Compute the rank of n pairs by word overlap minus their rank by score (higher is better), divided by n.

    A value near 1 means many words in common but a bad score; near -1 means few words but a good score.
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


# The same words return all the time, and looking up each character's category is slow.
@lru_cache(maxsize=100_000)
def _normal(word: str) -> str:
    """Convert a word to lower case and keep only its letters, combining marks and digits."""
    return "".join(character for character in word.lower() if unicodedata.category(character)[0] in "LMN")
