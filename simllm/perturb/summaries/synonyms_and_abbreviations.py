"""Replacement of words in a summary by synonyms, and of abbreviations by their long forms or vice versa."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simllm.perturb.summaries.lexicon import Lexicon
from simllm.perturb.summaries.word_replacement import replace, replace_each, replaceable


def synonyms(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield copies of a text in which one word or short phrase is replaced by a synonym.

    There is one copy for each possible replacement. `lexicon` has the synonyms. `random` is not used, but
    every edit function must accept it.
    """
    return replace_each(text, lexicon.synonyms, lexicon)


def abbreviations(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield copies of a text in which one word or short phrase is abbreviated or written out.

    For example, "config" becomes "configuration", and vice versa. There is one copy for each possible
    replacement. `lexicon` has the abbreviations. `random` is not used, but every edit function must accept
    it.
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
