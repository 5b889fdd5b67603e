"""Edit similarity of two pieces of code: 1 - (edit distance) / (length of the code), in characters.

The two functions differ in the edit distance, and in the length by which the distance is divided.
"""

from __future__ import annotations


def levenshtein_similarity(candidate: str, reference: str) -> float:
    """Compute 1 - (Levenshtein distance) / (length of the longer text), both in characters."""
    from rapidfuzz.distance import Levenshtein

    return float(Levenshtein.normalized_similarity(candidate, reference))


def indel_similarity(candidate: str, reference: str) -> float:
    """Compute 1 - (smallest number of insertions and deletions) / (sum of both lengths), in characters."""
    from rapidfuzz.distance import Indel

    return float(Indel.normalized_similarity(candidate, reference))
