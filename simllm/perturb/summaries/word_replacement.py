"""Replacement of words in a summary, and search for the words that can be replaced."""

from __future__ import annotations

from collections.abc import Iterator

from simllm.perturb.summaries.indefinite_article import indefinite_article
from simllm.perturb.summaries.lexicon import Lexicon, Replacements
from simllm.perturb.summaries.part_of_speech import fits

_LONGEST = 3  # words of the longest phrase that is replaced


def replaceable(
    words: list[str], table: Replacements, lexicon: Lexicon
) -> Iterator[tuple[int, int, list[str]]]:
    """Find the words and short phrases of a summary that can be replaced.

    Args:
        words: The words of the summary.
        table: For each word or phrase, the words that may replace it, with their part of speech.
        lexicon: Tells which words are verbs and nouns. A replacement is used only if it has the same part of
            speech as the old word.

    Yields:
        For each word or phrase that can be replaced: the index of its first word, the index after its last
        word, and the list of its replacements.
    """
    for start in range(len(words)):
        for end in range(min(start + _LONGEST, len(words)), start, -1):
            options = table.get(" ".join(words[start:end]))
            if options:
                fitting = [option.word for option in options if fits(words, start, end, option, lexicon)]
                if fitting:
                    yield start, end, fitting
                    break


def replace(words: list[str], start: int, end: int, new: str) -> list[str]:
    """Replace some words of a text, and correct an indefinite article before the new words.

    For example, if "list" becomes "array" in "a list", the result is "an array".

    Args:
        words: The words of the text.
        start: The index of the first word to replace.
        end: The index after the last word to replace.
        new: The new word or phrase.

    Returns:
        The words of the new text.
    """
    before = words[:start]
    if before and before[-1] in ("a", "an"):
        before = [*before[:-1], indefinite_article(new)]
    return [*before, *new.split(), *words[end:]]


def replace_each(text: str, table: Replacements, lexicon: Lexicon) -> Iterator[str]:
    """Yield one text for each possible replacement of a word or phrase in a text.

    Each yielded text has exactly one word or phrase replaced.

    Args:
        text: The text, in the cleaned form that `simllm.text_cleaning.clean` returns.
        table: For each word or phrase, the words that may replace it.
        lexicon: Tells which words are verbs and nouns. A word is only replaced by a word with the same part
            of speech.
    """
    words = text.split()
    for start, end, options in replaceable(words, table, lexicon):
        yield from (" ".join(replace(words, start, end, option)) for option in options)
