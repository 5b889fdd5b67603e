"""ROUGE-1, ROUGE-2 and ROUGE-L (Lin, 2004) on stemmed words, from Google's package rouge-score."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simllm.metrics.text.readable_texts import TextScorer

WORDS = "of Latin letters or digits"
AT_LEAST = {1: "without words", 2: "with fewer than two words"}


def load(kind: str) -> TextScorer:
    """Load ROUGE of a kind: `rouge1`, `rouge2` or `rougeL`; scores are F1, from 0 to 1."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer([kind], use_stemmer=True)

    # The scorer's own tokenizer, so that both always read the same words.
    tokenize = scorer._tokenizer.tokenize

    def score_one(candidate: str, reference: str) -> float:
        if kind != "rougeL":
            return float(scorer.score(reference, candidate)[kind].fmeasure)
        a, b = tokenize(candidate), tokenize(reference)
        return 2 * lcs_length(a, b) / (len(a) + len(b)) if a and b else 0.0

    def score(candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
        return np.array([score_one(*pair) for pair in zip(candidates, references, strict=True)], float)

    needed = 2 if kind == "rouge2" else 1
    return TextScorer(score, lambda text: len(tokenize(text)) >= needed, f"{AT_LEAST[needed]} {WORDS}")


def lcs_length(a: Sequence[str], b: Sequence[str]) -> int:
    """Return the length of the longest common subsequence of two lists of words.

    rouge-score builds a table of all pairs of words, which takes gigabytes for long texts. Here, a row of the
    table is the bits of one number (Hyyrö, 2004): a 0 stands where the length grows by 1.
    """
    places: defaultdict[str, int] = defaultdict(int)
    for place, word in enumerate(a):
        places[word] |= 1 << place
    row = every = (1 << len(a)) - 1
    for word in b:
        matched = row & places.get(word, 0)
        row = ((row + matched) | (row - matched)) & every
    return len(a) - row.bit_count()
