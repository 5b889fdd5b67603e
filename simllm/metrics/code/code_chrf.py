"""chrF of two pieces of code: the F-score of their character n-grams, from sacrebleu."""

from __future__ import annotations


def chrf_of_code(candidate: str, reference: str) -> float:
    """Compute chrF (character n-gram F-score; Popović, 2015) by sacrebleu; return a value from 0 to 1."""
    from sacrebleu.metrics.chrf import CHRF

    return float(CHRF().sentence_score(candidate, [reference]).score) / 100
