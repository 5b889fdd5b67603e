"""Edits that replace a word of a summary by an opposite or by a neighbour.

Neighbours are words of the same category, such as "row" and "column".
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simllm.perturb.summaries.function_words import DETERMINERS
from simllm.perturb.summaries.lexicon import Lexicon, Replacements
from simllm.perturb.summaries.word_replacement import replace, replaceable


def opposites(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield one text for each word that has opposites: `text` with this word replaced by a random opposite.

    `lexicon` has the opposites. `random` chooses one opposite.
    """
    return _replace_randomly(text, lexicon.opposites, lexicon, random)


def neighbours(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield one text for each word that has neighbours: `text` with this word replaced by a neighbour.

    Neighbours are words of the same category, such as "row" and "column". `lexicon` has the neighbours.
    `random` chooses one neighbour.
    """
    return _replace_randomly(text, lexicon.neighbours, lexicon, random)


def _replace_randomly(
    text: str, table: Replacements, lexicon: Lexicon, random: np.random.Generator
) -> Iterator[str]:
    """Yield one text for each word that has replacements: `text` with a random replacement of this word.

    Args:
        text: The cleaned text.
        table: For each word or phrase, the words that may replace it.
        lexicon: Tells which words are verbs and nouns; a replacement must have the same part of speech.
        random: The generator that chooses one of the replacements.
    """
    words = text.split()
    for start, end, options in replaceable(words, table, lexicon):
        others = [option for option in options if option not in words]  # avoid "between min and min"
        if others:
            new = others[random.integers(len(others))]
            if not (new in DETERMINERS and DETERMINERS.intersection(words[end : end + 1])):  # "no the"
                yield " ".join(replace(words, start, end, new))
