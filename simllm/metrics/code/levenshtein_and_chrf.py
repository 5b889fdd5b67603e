"""Similarities of two pieces of code by characters: Levenshtein distance and chrF."""

from __future__ import annotations


def edit_similarity(candidate: str, reference: str) -> float:
    """Compute 1 - (Levenshtein distance) / (length of the longer text), both in characters."""
    from rapidfuzz.distance import Levenshtein

    return float(Levenshtein.normalized_similarity(candidate, reference))


def indel_similarity(candidate: str, reference: str) -> float:
    """Compute 1 - (smallest number of insertions and deletions) / (sum of both lengths), in characters."""
    from rapidfuzz.distance import Indel

    return float(Indel.normalized_similarity(candidate, reference))


def code_chrf(candidate: str, reference: str) -> float:
    """Compute chrF (character n-gram F-score; Popović, 2015) by sacrebleu; return a value from 0 to 1."""
    from sacrebleu.metrics.chrf import CHRF

    return float(CHRF().sentence_score(candidate, [reference]).score) / 100
