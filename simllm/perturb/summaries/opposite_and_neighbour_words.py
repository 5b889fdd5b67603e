"""Edits that replace a word of a summary by its opposite, or by a neighbour."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simllm.perturb.summaries.function_words import DETERMINERS
from simllm.perturb.summaries.lexicon import Lexicon, Replacements
from simllm.perturb.summaries.word_replacement import replace, replaceable


def opposites(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Replace a word or phrase by a random opposite, such as "open" by "close"."""
    return _replace_randomly(text, lexicon.opposites, lexicon, random)


def neighbours(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Replace a word by a random neighbour, such as "row" by "column"."""
    return _replace_randomly(text, lexicon.neighbours, lexicon, random)


def _replace_randomly(
    text: str, table: Replacements, lexicon: Lexicon, random: np.random.Generator
) -> Iterator[str]:
    """Replace each word or phrase by a random word from a table that does not occur in the text."""
    words = text.split()
    for start, end, options in replaceable(words, table, lexicon):
        # This avoids "between min and min".
        others = [option for option in options if option not in words]
        if others:
            new = others[random.integers(len(others))]
            # This avoids "no the".
            if not (new in DETERMINERS and DETERMINERS.intersection(words[end : end + 1])):
                yield " ".join(replace(words, start, end, new))
