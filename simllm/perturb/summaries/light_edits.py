"""Light edits, which keep the meaning of a summary; each function yields texts with one edit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np

from simllm.perturb.summaries.lexicon import Lexicon, Replacements
from simllm.perturb.summaries.numerals import other_spelling
from simllm.perturb.summaries.sentence import replace, replaceable

_ARTICLES = frozenset(("the", "a", "an"))


def case(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Capitalise the first letter, all letters, or every word."""
    yield from (text[:1].upper() + text[1:], text.upper(), text.title())


def punctuation(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Remove or add the full stop at the end; remove all commas."""
    yield text.removesuffix(" .") if text.endswith(" .") else f"{text} ."
    yield text.replace(" ,", "")


def articles(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Remove all articles."""
    yield " ".join(word for word in text.split() if word not in _ARTICLES)


def typos(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Exchange two neighbouring letters inside a longer word, for each such word."""
    for match in re.finditer(r"\b[a-z]{5,}\b", text):
        word = match[0]
        at = int(random.integers(1, len(word) - 2))
        typo = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        yield text[: match.start()] + typo + text[match.end() :]


def abbreviations(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Write out an abbreviation, or abbreviate a word, for each such word."""
    return _replace_each(text, lexicon.abbreviations, lexicon)


def numerals(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Write a small number in words instead of digits, or the other way round, for each such number."""
    words = text.split()
    for place in range(len(words)):
        yield " ".join([*words[:place], other_spelling(words, place), *words[place + 1 :]])


def synonyms(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Replace a word by a synonym, for each word that has one."""
    return _replace_each(text, lexicon.synonyms, lexicon)


KINDS: dict[str, Callable[[str, Lexicon, np.random.Generator], Iterator[str]]] = {
    "case": case,
    "punctuation": punctuation,
    "articles": articles,
    "typo": typos,
    "abbreviation": abbreviations,
    "numeral": numerals,
    "synonym": synonyms,
}


def _replace_each(text: str, table: Replacements, lexicon: Lexicon) -> Iterator[str]:
    """Yield the text once for each word and each of its replacements in the table."""
    words = text.split()
    for start, end, options in replaceable(words, table, lexicon):
        yield from (" ".join(replace(words, start, end, option)) for option in options)
