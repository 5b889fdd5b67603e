"""Explanation of a score: what each word or clause contributes, and what changes the meaning."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simllm.array_types import Floats
from simllm.errors import InputError
from simllm.metric import SimLLM
from simllm.model.config import cosine
from simllm.scoring import token_matching
from simllm.scoring.scores import CHANGED, DOUBTFUL, SIMILAR
from simllm.scoring.sentences import UNSUPPORTED, Comparison, DividedText
from simllm.text_cleaning import clean

SMALLEST_GAIN = 0.2  # a word changes the meaning only if the probability without the word is higher by this
BOUNDARY = "▁"  # first character of a token that begins a word


@dataclass(frozen=True)
class Word:
    """A word of a candidate or a reference, in the explanation of the score of these two texts.

    Attributes:
        text: The word as it stands in the cleaned text.
        contribution: What the word adds to the score of the two texts.
        match: The most similar word of the other text.
        similarity: Cosine between the word and its match, from -1 to 1.
        same_without: Probability that the two texts have the same meaning without this word, or without this
            word and its match, whichever is larger. None if the model cannot estimate probabilities.
    """

    text: str
    contribution: float
    match: str
    similarity: float
    same_without: float | None = None


def find_changing_words(same: float, candidate: Sequence[Word], reference: Sequence[Word]) -> list[str]:
    """Find up to two changing words of each text, where `same` is the probability for the whole texts.

    Words that are in both texts are returned only if no other words are found.
    """
    chosen = []
    for side in (candidate, reference):
        gains = sorted(
            # Of equal gains, the earlier word wins.
            ((word.same_without or 0.0) - same, -i, word.text)
            for i, word in enumerate(side)
            if not _is_punctuation(word.text)
        )
        chosen += [text for gain, _, text in gains[::-1][:2] if gain > max(SMALLEST_GAIN, gains[-1][0] / 2)]
    found = list(dict.fromkeys(chosen))
    common = {word.text for word in candidate} & {word.text for word in reference}
    return [word for word in found if word not in common] or found


def pairs_without_words(candidate: Sequence[Word], reference: Sequence[Word]) -> list[tuple[str, str]]:
    """Make two pairs of texts for each word of the candidate, then for each word of the reference.

    In the first pair, the word is left out; in the second pair, its match in the other text is left out, too.
    The text without the word comes first.
    """
    sides = [candidate, reference]
    texts = [[word.text for word in side] for side in sides]
    pairs: list[tuple[str, str]] = []
    for own, other in ((0, 1), (1, 0)):
        for place, word in enumerate(sides[own]):
            rest = " ".join(texts[own][:place] + texts[own][place + 1 :])
            match = texts[other].index(word.match)
            pairs.append((rest, " ".join(texts[other])))
            # A word that both texts have must go from both: without it in one text alone, they differ more.
            pairs.append((rest, " ".join(texts[other][:match] + texts[other][match + 1 :])))
    return pairs


def _is_punctuation(word: str) -> bool:
    """Return whether a word consists of punctuation only. Signs such as "<" are not punctuation."""
    return all(unicodedata.category(character).startswith("P") for character in word)


@dataclass(frozen=True)
class Explanation:
    """Explanation of the score of two texts, candidate and reference.

    Attributes:
        score: The score.
        candidate: The words of the candidate, with their contributions to the score.
        reference: The words of the reference, with their contributions to the score.
        rest: The contribution of the start and end tokens (<s> and </s>) of the candidate, and that of the
            reference. For each text, this number and the words' contributions add up to the score.
        signature: Text that names everything that can change a score, such as the model and the version.
        same: Probability that the texts have the same meaning; None if the model cannot estimate it.
        changed: Whether the texts have a high score but probably differ in meaning.
    """

    score: float
    candidate: list[Word]
    reference: list[Word]
    rest: tuple[float, float]
    signature: str
    same: float | None = None
    changed: bool = False

    @property
    def changing_words(self) -> list[str]:
        """Up to two words of each text that make the texts differ in meaning.

        If such a word is left out, the probability that both texts have the same meaning is clearly higher.
        The list is empty if there are no such words, or if the model cannot estimate the probability.
        """
        if self.same is None:
            return []
        return find_changing_words(self.same, self.candidate, self.reference)


ADDED, OMITTED = "adds something without support", "not said"


@dataclass(frozen=True)
class Clause:
    """A clause of a candidate or a reference of several sentences.

    Attributes:
        text: The clause, without Markdown and openers such as "This method".
        match: The most similar clause of the other text.
        similarity: Similarity of the clause and its match.
        same: Probability that both have the same meaning; None if the model cannot estimate it.
        note: "adds something without support" or "not said" if the similarity is below 0.25; "meaning may
            have changed" if it is at least 0.4, but `same` is below 0.3; "" otherwise.
    """

    text: str
    match: str
    similarity: float
    same: float | None
    note: str


@dataclass(frozen=True)
class ClauseExplanation:
    """Explanation of the score of two texts of which at least one has several sentences.

    Attributes:
        score: The score: the harmonic mean of `precision` and `recall`, times `length_factor`.
        precision: Mean similarity of the candidate's clauses and their matches, weighted by words.
        recall: Mean similarity of the reference's clauses and their matches, weighted by words.
        length_factor: 1, or less for a candidate that is longer than its reference.
        words: Number of words in the candidate and in the reference.
        candidate: The clauses of the candidate.
        reference: The clauses of the reference.
        signature: Text that names everything that can change a score, such as the model and the version.
        same: Mean of the clauses' probabilities of the same meaning; None if the model cannot estimate it.
    """

    score: float
    precision: float
    recall: float
    length_factor: float
    words: tuple[int, int]
    candidate: list[Clause]
    reference: list[Clause]
    signature: str
    same: float | None = None


def explain_clauses(metric: SimLLM, candidate: str, reference: str) -> ClauseExplanation | None:
    """Explain the score of two texts clause by clause; None if the metric compares them as a whole."""
    compared = metric.compare_sentences(candidate, reference)
    if compared is None:
        return None
    first, second, comparison = compared
    precision, recall = comparison.precision_and_recall
    return ClauseExplanation(
        comparison.score,
        precision,
        recall,
        comparison.factor,
        (first.length, second.length),
        _clauses(first, second, comparison, 0),
        _clauses(second, first, comparison, 1),
        metric.signature,
        comparison.mean_same,
    )


def _clauses(own: DividedText, other: DividedText, comparison: Comparison, side: int) -> list[Clause]:
    """Describe the clauses of the candidate (`side` 0) or of the reference (1)."""
    best, matches = comparison.similar.max(1 - side), comparison.matches[side]
    same = [None] * len(best) if comparison.same is None else comparison.same[side].tolist()
    return [
        Clause(text, other.texts[j], similar, probability, _note(similar, probability, side))
        for text, j, similar, probability in zip(own.texts, matches, best.tolist(), same, strict=True)
    ]


def _note(similar: float, same: float | None, side: int) -> str:
    """Return the note about a clause of the candidate (`side` 0) or of the reference (1)."""
    if similar < UNSUPPORTED:
        return OMITTED if side else ADDED
    return CHANGED if same is not None and similar >= SIMILAR and same < DOUBTFUL else ""


def explain(metric: SimLLM, candidate: str, reference: str) -> Explanation:
    """Explain the score of a candidate and its reference, word by word.

    For texts of several sentences, use `explain_clauses`, or a metric with `long="whole"`.

    Args:
        metric: A metric with mean pooling and cosine.
        candidate: The text to judge.
        reference: The text to which the candidate is compared.

    Raises:
        InputError: The metric does not use mean pooling and cosine, a text is empty after cleaning, or the
            metric splits a text into several windows or clauses.
    """
    return explain_pairs(metric, [(candidate, reference)])[0]


def explain_pairs(metric: SimLLM, pairs: Sequence[tuple[str, str]]) -> list[Explanation]:
    """Explain several pairs as `explain` does, faster: the encoder reads all texts together."""
    if (metric.pooling, metric.similarity) != ("mean", "cosine"):
        raise InputError("explain: only mean pooling with cosine is a sum over words")
    if not all(clean(text) for pair in pairs for text in pair):
        raise InputError("explain: a text is empty after cleaning; expected two texts with words")
    if any(metric.divides(*pair) for pair in pairs):
        raise InputError("explain: a text has several sentences; use explain_clauses, or long='whole'")
    texts = metric.tokenize([text for pair in pairs for text in pair])
    if any(len(windows) > 1 for windows in texts.inputs):
        raise InputError("explain: a text is longer than the model reads; use on_long='truncate'")
    whole = [
        state.astype(np.float64)
        for state in token_matching.token_states(metric.engine, texts, boundaries=True)
    ]
    spelled = [_words(metric, ids[1:-1]) for (ids,) in texts.inputs]
    scores = metric.score([a for a, _ in pairs], [b for _, b in pairs])  # warns about truncated texts
    explanations = []
    for i in range(len(pairs)):
        both = slice(2 * i, 2 * i + 2)
        score, sides, rest = _contributions(whole[both], spelled[both])
        same = None if scores.same is None else float(scores.same[i])
        explanations.append(Explanation(score, *sides, rest, metric.signature, same, bool(scores.changed[i])))
    return explanations if scores.same is None else _with_probabilities(metric, explanations)


def _contributions(
    whole: list[Floats], spelled: list[list[tuple[str, slice]]]
) -> tuple[float, tuple[list[Word], list[Word]], tuple[float, float]]:
    """Split the score of two texts into the contributions of their words.

    `whole` has the (L, D) states of each text's L tokens, <s> and </s> included. `spelled` has each text's
    words: spelling, and slice of tokens, counted from the first token after <s>. The result is the score, the
    words of both texts, and the contribution of <s> and </s> in each text.
    """
    means = [states.mean(0) for states in whole]
    scale = np.linalg.norm(means[0]) * np.linalg.norm(means[1])
    shares = [
        states @ other / (len(states) * scale) for states, other in zip(whole, means[::-1], strict=True)
    ]
    states = [
        np.stack([states[1:-1][rows].mean(0) for _, rows in words])
        for states, words in zip(whole, spelled, strict=True)
    ]
    similar = token_matching.cosines(*states)
    candidate, reference = (
        [
            Word(text, float(share[1:-1][rows].sum()), others[int(row.argmax())][0], float(row.max()))
            for (text, rows), row in zip(words, table, strict=True)
        ]
        for words, others, share, table in (
            (spelled[0], spelled[1], shares[0], similar),
            (spelled[1], spelled[0], shares[1], similar.T),
        )
    )
    score = float(cosine(means[0][None], means[1][None])[0])  # the sum of the shares, with less rounding
    first, second = (float(share[0] + share[-1]) for share in shares)
    return score, (candidate, reference), (first, second)


def _with_probabilities(metric: SimLLM, explanations: Sequence[Explanation]) -> list[Explanation]:
    """Return copies of the explanations in which `same_without` is set for all words."""
    pairs = [
        pair
        for explanation in explanations
        for pair in pairs_without_words(explanation.candidate, explanation.reference)
    ]
    same = metric.score([a for a, _ in pairs], [b for _, b in pairs]).on("same").reshape(-1, 2).max(1)
    values = iter(same.tolist())
    return [
        replace(
            explanation,
            candidate=[replace(word, same_without=next(values)) for word in explanation.candidate],
            reference=[replace(word, same_without=next(values)) for word in explanation.reference],
        )
        for explanation in explanations
    ]


def _words(metric: SimLLM, ids: tuple[int, ...]) -> list[tuple[str, slice]]:
    """Join the tokens of a text, without <s> and </s>, into words: the spelling, and the slice of tokens."""
    tokens = [metric.model.tokenizer.id_to_token(number) for number in ids]
    starts = [i for i, token in enumerate(tokens) if i == 0 or token.startswith(BOUNDARY)]
    ends = [*starts[1:], len(tokens)]
    return [
        ("".join(tokens[start:end]).replace(BOUNDARY, ""), slice(start, end))
        for start, end in zip(starts, ends, strict=True)
    ]
