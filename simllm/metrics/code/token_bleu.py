"""BLEU-4 over the tokens of code (Papineni et al., 2002), with smoothing method 4 of nltk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from simllm.metrics.code.code_tokens import tokenize


def bleu_of_tokens(candidate: str, reference: str) -> float:
    """Compute BLEU-4 of two pieces of code, from 0 to 1; equal lists of tokens score 1, even if empty."""
    tokens, expected = tokenize(candidate), tokenize(reference)
    return 1.0 if tokens == expected else bleu_of_lists(tokens, expected)


def bleu_of_lists(tokens: Sequence[str], expected: Sequence[str]) -> float:
    """Compute BLEU-4 of the tokens of a candidate and of a reference (`expected`)."""
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    return float(sentence_bleu([expected], tokens, smoothing_function=SmoothingFunction().method4))


def corpus_bleu_of_tokens(pairs: Iterable[tuple[str, str]]) -> float:
    """Compute one BLEU-4 from n-gram counts and lengths that are summed over candidates and references."""
    from nltk.translate.bleu_score import SmoothingFunction, corpus_bleu

    tokens = [(tokenize(candidate), [tokenize(reference)]) for candidate, reference in pairs]
    candidates, references = zip(*tokens, strict=True)
    return float(corpus_bleu(references, candidates, smoothing_function=SmoothingFunction().method4))
