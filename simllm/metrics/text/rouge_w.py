"""ROUGE-W on stemmed words: the longest common subsequence, with more weight on consecutive matches.

The definition is in Lin, "ROUGE: a package for automatic evaluation of summaries", 2004, section 4. This
module implements ROUGE-W itself, because no maintained library has it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simllm.metrics.text.readable_texts import TextScorer
from simllm.metrics.text.rouge import AT_LEAST, WORDS

# A run of k consecutive matches counts k^1.2, as in Lin's package.
_WEIGHT = 1.2


def load() -> TextScorer:
    """Load ROUGE-W; scores are F1, from 0 to 1."""
    from nltk.stem.porter import PorterStemmer
    from rouge_score.tokenize import tokenize

    stemmer = PorterStemmer()

    def score(candidates: Sequence[str], references: Sequence[str]) -> NDArray[np.float64]:
        pairs = zip(candidates, references, strict=True)
        return np.array([f1(tokenize(c, stemmer), tokenize(r, stemmer)) for c, r in pairs], float)

    return TextScorer(score, lambda text: bool(tokenize(text, stemmer)), f"{AT_LEAST[1]} {WORDS}")


def f1(candidate: Sequence[str], reference: Sequence[str], weight: float = _WEIGHT) -> float:
    """Compute ROUGE-W of two lists of words: F1 (eq. 13 to 15 of Lin, 2004)."""
    common = _weighted_lcs(candidate, reference, weight)
    if not common:
        return 0.0
    # The root undoes the power: a text that matches itself has precision and recall 1.
    precision, recall = ((common / len(words) ** weight) ** (1 / weight) for words in (candidate, reference))
    return 2 * precision * recall / (precision + recall)


def _weighted_lcs(a: Sequence[str], b: Sequence[str], weight: float) -> float:
    """Compute the longest common subsequence, k consecutive matches counting k^w (Lin, 2004: WLCS)."""
    # Two rows of the table at a time: the whole table takes gigabytes for long texts.
    best = [0.0] * (len(b) + 1)  # for the words of a so far and the first j words of b
    run = [0] * (len(b) + 1)  # consecutive matches that end at these words
    for x in a:
        above, best, above_run, run = best, [0.0], run, [0]
        for j, y in enumerate(b):
            k = above_run[j]
            run.append(k + 1 if x == y else 0)
            best.append(above[j] + (k + 1) ** weight - k**weight if x == y else max(above[j + 1], best[j]))
    return best[-1]
