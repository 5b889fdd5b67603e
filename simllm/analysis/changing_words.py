"""Changing words: the words that make a candidate and its reference differ in meaning."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from simllm.analysis.explained_word import Word

SMALLEST_GAIN = 0.2  # a word changes the meaning only if the probability without the word is higher by this


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
