"""Edits that replace a word of a summary by its opposite, or by another word of the same category.

Words of the same category, such as "row" and "column", are called neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simllm.perturb.summaries.function_words import DETERMINERS
from simllm.perturb.summaries.lexicon import Lexicon, Replacements
from simllm.perturb.summaries.word_replacement import replace, replaceable


def opposites(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield copies of `text`, in each of which one word or phrase is replaced by its opposite.

    For example, "open" may become "close". `lexicon` lists the opposites. If there are several for a word,
    `random` chooses one.
    """
    return _replace_randomly(text, lexicon.opposites, lexicon, random)


def neighbours(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield copies of `text`, in each of which one word is replaced by another word of the same category.

    For example, "row" may become "column". Words of the same category are called neighbours, and `lexicon`
    lists them. If a word has several neighbours, `random` chooses one.
    """
    return _replace_randomly(text, lexicon.neighbours, lexicon, random)


def _replace_randomly(
    text: str, table: Replacements, lexicon: Lexicon, random: np.random.Generator
) -> Iterator[str]:
    """Yield copies of `text`, in each of which one word or phrase is replaced by a random word from a table.

    The new word is never a word that already occurs in `text`. A word or phrase without any such replacement
    is skipped.

    Args:
        text: The text, in the cleaned form that `simllm.text_cleaning.clean` returns.
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
