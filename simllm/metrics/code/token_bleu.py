"""BLEU-4 over the tokens of code (Papineni et al., 2002), with smoothing method 4 of nltk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from simllm.metrics.code.code_tokens import tokenize


def bleu_of_tokens(candidate: str, reference: str) -> float:
    """Compute BLEU-4 of two pieces of code, a candidate and a reference, from 0 to 1.

    The code is split into words and single punctuation characters. If the candidate and the reference have
    the same tokens, the result is 1, even if there are no tokens.
    """
    tokens, expected = tokenize(candidate), tokenize(reference)
    return 1.0 if tokens == expected else bleu_of_lists(tokens, expected)


def bleu_of_lists(tokens: Sequence[str], expected: Sequence[str]) -> float:
    """Compute BLEU-4 of a candidate and a reference, given as lists of tokens.

    The computation is that of nltk with its smoothing method 4.

    Args:
        tokens: The tokens of the candidate.
        expected: The tokens of the reference.
    """
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    return float(sentence_bleu([expected], tokens, smoothing_function=SmoothingFunction().method4))


def corpus_bleu_of_tokens(pairs: Iterable[tuple[str, str]]) -> float:
    """Compute the corpus BLEU-4 of several pairs of code, each a candidate and its reference.

    The n-gram counts and the lengths in tokens are summed over all pairs. One BLEU-4 is computed from the
    sums.

    Args:
        pairs: The candidate and the reference of each pair.
    """
    from nltk.translate.bleu_score import SmoothingFunction, corpus_bleu

    tokens = [(tokenize(candidate), [tokenize(reference)]) for candidate, reference in pairs]
    candidates, references = zip(*tokens, strict=True)
    return float(corpus_bleu(references, candidates, smoothing_function=SmoothingFunction().method4))
