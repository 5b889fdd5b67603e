"""BLEU-4 over the tokens of code (Papineni et al., 2002), with smoothing method 4 of nltk."""

from __future__ import annotations

from simllm.metrics.code.versions import tokenize


def bleu_of_tokens(candidate: str, reference: str) -> float:
    """Compute BLEU-4 of a candidate and a reference, from 0 to 1; equal token lists give 1."""
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    tokens, expected = tokenize(candidate), tokenize(reference)
    if tokens == expected:
        return 1.0
    return float(sentence_bleu([expected], tokens, smoothing_function=SmoothingFunction().method4))
