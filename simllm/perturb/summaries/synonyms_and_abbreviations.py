"""Replacement of words in a summary by synonyms, and of abbreviations by their long forms or vice versa."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simllm.perturb.summaries.lexicon import Lexicon
from simllm.perturb.summaries.word_replacement import replace, replace_each, replaceable


def synonyms(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield one text for each word and each of its synonyms: `text` with the synonym instead of the word.

    `lexicon` has the synonyms. `random` is not used, but every edit function must accept it.
    """
    return replace_each(text, lexicon.synonyms, lexicon)


def abbreviations(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield one text for each word that can be abbreviated or written out: `text` with this change.

    For example, "config" becomes "configuration", and vice versa. `lexicon` has the abbreviations. `random`
    is not used, but every edit function must accept it.
    """
    return replace_each(text, lexicon.abbreviations, lexicon)


def replace_randomly(
    words: list[str], lexicon: Lexicon, random: np.random.Generator, probability: float
) -> list[str]:
    """Replace some random words of a text by random synonyms.

    Args:
        words: The words of the text.
        lexicon: The lexicon with the synonyms.
        random: The generator that chooses the words to replace and their synonyms.
        probability: The probability with which a word that has synonyms is replaced. At least one such word
            is replaced.

    Returns:
        The words of the new text; `words` if no word has synonyms.
    """
    places = list(replaceable(words, lexicon.synonyms, lexicon))
    if not places:
        return words
    chosen = [place for place in places if random.random() < probability]
    taken = len(words) + 1
    for start, end, options in reversed(chosen or [places[random.integers(len(places))]]):
        if end <= taken:
            words = replace(words, start, end, options[random.integers(len(options))])
            taken = start
    return words
