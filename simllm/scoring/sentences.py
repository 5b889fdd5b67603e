"""Scores of texts with several sentences: clause by clause, with a price for excess length.

Each clause of one text is matched with the most similar clause of the other text. *Precision* is the mean
similarity of the candidate's clauses and their matches, weighted by numbers of words: how much of the
candidate is supported. *Recall* is that of the reference's clauses: how much of the reference is said. The
score is their harmonic mean, times a *length factor* below 1 if the candidate is longer than the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simllm.array_types import Floats
from simllm.text_cleaning import SEVERAL_SENTENCES, count_words, divide

LONG = ("sentences", "whole")
# Words that are added to both lengths, so that a reference of one line, which leaves out what any summary may
# say, allows more than one line. Chosen on rated summaries; 10 to 100 agree with people about equally.
ALLOWANCE = 40
# Similarity below which a clause has no support: 95 of 100 clauses of unrelated texts have matches below .23.
UNSUPPORTED = 0.25


@dataclass(frozen=True)
class DividedText:
    """The clauses of one text that is compared clause by clause.

    Attributes:
        texts: The clauses.
        length: Number of words in the whole text.
        windows: For each clause, its number of windows; () until the text is tokenized.
    """

    texts: tuple[str, ...]
    length: int
    windows: tuple[int, ...] = ()

    @property
    def words(self) -> Floats:
        """The number of words in each clause, at least 1."""
        return np.array([max(1, count_words(text)) for text in self.texts], float)

    def choose(self, clauses: Sequence[int], windows: Sequence[int]) -> DividedText:
        """Return the text with only these clauses, and their numbers of windows."""
        return DividedText(tuple(self.texts[k] for k in clauses), self.length, tuple(windows))


def divide_pairs(texts: Sequence[str]) -> dict[int, DividedText]:
    """Divide the texts of pairs in which a text has several sentences; the result has them by index.

    `texts` are n candidates, then n references.
    """
    n = len(texts) // 2
    several = [SEVERAL_SENTENCES.search(text) for text in texts]  # much faster than `divide`
    divided = {}
    for i in range(n):
        if several[i] or several[n + i]:
            both = divide(texts[i]), divide(texts[n + i])
            if max(parts.sentences for parts in both) > 1 and all(parts.texts for parts in both):
                for index, parts in zip((i, n + i), both, strict=True):
                    divided[index] = DividedText(parts.texts, parts.words)
    return divided


class Comparison(NamedTuple):
    """The comparison of a candidate and a reference, clause by clause.

    Attributes:
        similar: (m, k) similarities of the candidate's m clauses and the reference's k clauses.
        words: The (m,) and the (k,) numbers of words in the clauses.
        factor: The length factor, above 0 and at most 1.
        same: The (m,) and the (k,) probabilities that a clause and its match have the same meaning; None if
            the model cannot estimate them.
    """

    similar: Floats
    words: tuple[Floats, Floats]
    factor: float
    same: tuple[Floats, Floats] | None = None

    @property
    def matches(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The index of the match of each clause: (m,) of the candidate's, and (k,) of the reference's."""
        return self.similar.argmax(1), self.similar.argmax(0)

    @property
    def matched_pairs(self) -> set[tuple[int, int]]:
        """The pairs (i, j) of clauses of which one is the match of the other."""
        of_candidate, of_reference = (indices.tolist() for indices in self.matches)
        return {*enumerate(of_candidate), *((i, j) for j, i in enumerate(of_reference))}

    @property
    def precision_and_recall(self) -> tuple[float, float]:
        """The weighted mean similarities of the candidate's clauses, and of the reference's."""
        return self.means(self.similar.max(1), self.similar.max(0))

    @property
    def score(self) -> float:
        """The score of the pair, from 0 to 1."""
        return self.factor * harmonic_mean(*self.precision_and_recall)

    @property
    def mean_same(self) -> float | None:
        """The harmonic mean of both texts' mean probabilities of the same meaning; None without them."""
        return None if self.same is None else harmonic_mean(*self.means(*self.same))

    def means(self, of_candidate: Floats, of_reference: Floats) -> tuple[float, float]:
        """Compute the means of a value of each clause in both texts, weighted by numbers of words."""
        first, second = self.words
        return (
            float((of_candidate * first).sum() / first.sum()),
            float((of_reference * second).sum() / second.sum()),
        )


def compare(similar: Floats, candidate: DividedText, reference: DividedText) -> Comparison:
    """Compare two texts by the (m, k) similarities of their clauses."""
    factor = length_factor(candidate.length, reference.length)
    return Comparison(similar, (candidate.words, reference.words), factor)


def length_factor(candidate: int, reference: int) -> float:
    """Return the price of excess length for two numbers of words: 1 unless the candidate is longer."""
    return min(1.0, (reference + ALLOWANCE) / (candidate + ALLOWANCE))


def harmonic_mean(a: float, b: float) -> float:
    """Compute the harmonic mean of two numbers; it is 0 unless both are positive."""
    return 2 * a * b / (a + b) if a > 0 and b > 0 else 0.0
