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
    """Yield the start, end and fitting replacements of each word or short phrase in a table."""
    for start in range(len(words)):
        # The longest phrase comes first: "set up" is not replaced as "set".
        for end in range(min(start + _LONGEST, len(words)), start, -1):
            options = table.get(" ".join(words[start:end]))
            if options:
                fitting = [option.word for option in options if fits(words, start, end, option, lexicon)]
                if fitting:
                    yield start, end, fitting
                    break


def replace(words: list[str], start: int, end: int, new: str) -> list[str]:
    """Replace some words, and correct an indefinite article before them: "a list" becomes "an array"."""
    before = words[:start]
    if before and before[-1] in ("a", "an"):
        before = [*before[:-1], indefinite_article(new)]
    return [*before, *new.split(), *words[end:]]


def replace_each(text: str, table: Replacements, lexicon: Lexicon) -> Iterator[str]:
    """Yield one text for each possible replacement of a word or phrase."""
    words = text.split()
    for start, end, options in replaceable(words, table, lexicon):
        yield from (" ".join(replace(words, start, end, option)) for option in options)
