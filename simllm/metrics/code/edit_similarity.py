"""Edit similarity of two pieces of code, in characters: 1 - (edit distance) / (largest possible distance)."""

from __future__ import annotations


def levenshtein_similarity(candidate: str, reference: str) -> float:
    """Compute 1 - (Levenshtein distance) / (length of the longer text)."""
    from rapidfuzz.distance import Levenshtein

    return float(Levenshtein.normalized_similarity(candidate, reference))


def indel_similarity(candidate: str, reference: str) -> float:
    """Compute 1 - (smallest number of insertions and deletions) / (sum of both lengths)."""
    from rapidfuzz.distance import Indel

    return float(Indel.normalized_similarity(candidate, reference))
