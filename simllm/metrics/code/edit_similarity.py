"""Edit similarity of two pieces of code: 1 minus their relative edit distance, in characters."""

from __future__ import annotations


def levenshtein_similarity(candidate: str, reference: str) -> float:
    """Compute 1 - (Levenshtein distance) / (length of the longer text), both in characters."""
    from rapidfuzz.distance import Levenshtein

    return float(Levenshtein.normalized_similarity(candidate, reference))


def indel_similarity(candidate: str, reference: str) -> float:
    """Compute 1 - (smallest number of insertions and deletions) / (sum of both lengths), in characters."""
    from rapidfuzz.distance import Indel

    return float(Indel.normalized_similarity(candidate, reference))
