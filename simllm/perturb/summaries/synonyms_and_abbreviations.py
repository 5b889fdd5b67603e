"""Replacement of words in a summary by synonyms, and of abbreviations by their long forms or vice versa."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simllm.perturb.summaries.lexicon import Lexicon
from simllm.perturb.summaries.word_replacement import replace, replace_each, replaceable


def synonyms(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Replace a word or short phrase by a synonym; there is one text for each replacement."""
    return replace_each(text, lexicon.synonyms, lexicon)


def abbreviations(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Abbreviate a word or write it out: "config" becomes "configuration", and vice versa."""
    return replace_each(text, lexicon.abbreviations, lexicon)


def replace_randomly(
    words: list[str], lexicon: Lexicon, random: np.random.Generator, probability: float
) -> list[str]:
    """Replace each word that has synonyms with the given probability, but at least one of these words."""
    places = list(replaceable(words, lexicon.synonyms, lexicon))
    if not places:
        return words
    chosen = [place for place in places if random.random() < probability]
    taken = len(words) + 1
    for start, end, options in reversed(chosen or [places[random.integers(len(places))]]):
        # From the end to the beginning, so that indices stay valid; overlapping phrases are skipped.
        if end <= taken:
            words = replace(words, start, end, options[random.integers(len(options))])
            taken = start
    return words
