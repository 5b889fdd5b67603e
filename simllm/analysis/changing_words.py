"""Changing words: the words that make a candidate and its reference differ in meaning.

If a changing word is left out, the probability that both texts have the same meaning is clearly higher.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from simllm.analysis.explained_word import Word

SMALLEST_GAIN = 0.2  # a word changes the meaning only if the probability without the word is higher by this


def find_changing_words(same: float, candidate: Sequence[Word], reference: Sequence[Word]) -> list[str]:
    """Find the words that make a candidate and its reference differ in meaning.

    If such a word is left out, the probability that both texts have the same meaning is clearly higher.
    Punctuation is ignored. Words that are in both texts are returned only if no other words are found.

    Args:
        same: The probability that the whole texts have the same meaning.
        candidate: The words of the candidate. Each word's attribute `same_without` is the probability that
            both texts have the same meaning if the word is left out.
        reference: The words of the reference, with the same attribute.

    Returns:
        Up to two words of the candidate and up to two words of the reference; empty if no word is found.
    """
    chosen = []
    for side in (candidate, reference):
        gains = sorted(
            ((word.same_without or 0.0) - same, -i, word.text)
            for i, word in enumerate(side)
            if not _is_punctuation(word.text)
        )
        chosen += [text for gain, _, text in gains[::-1][:2] if gain > max(SMALLEST_GAIN, gains[-1][0] / 2)]
    found = list(dict.fromkeys(chosen))
    common = {word.text for word in candidate} & {word.text for word in reference}
    return [word for word in found if word not in common] or found


def pairs_without_words(candidate: Sequence[Word], reference: Sequence[Word]) -> list[tuple[str, str]]:
    """Make pairs of a candidate and its reference in which each word is left out in turn.

    The pairs are scored later, to measure how much each word matters. The match of a word is the most similar
    word of the other text. For each word, there are two pairs:

    - Word left out: the word's text without the word, and the whole other text.
    - Word and match left out: the word's text without the word, and the other text without the match.

    Args:
        candidate: The words of the candidate.
        reference: The words of the reference.

    Returns:
        The two pairs of each word of the candidate, then the two pairs of each word of the reference. The
        first text of a pair is always the one from which the word was removed.
    """
    sides = [candidate, reference]
    texts = [[word.text for word in side] for side in sides]
    pairs: list[tuple[str, str]] = []
    for own, other in ((0, 1), (1, 0)):
        for place, word in enumerate(sides[own]):
            rest = " ".join(texts[own][:place] + texts[own][place + 1 :])
            match = texts[other].index(word.match)
            pairs.append((rest, " ".join(texts[other])))
            pairs.append((rest, " ".join(texts[other][:match] + texts[other][match + 1 :])))
    return pairs


def _is_punctuation(word: str) -> bool:
    """Return whether a word consists of punctuation only. Signs such as "<" are not punctuation."""
    return all(unicodedata.category(character).startswith("P") for character in word)
