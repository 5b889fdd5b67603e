"""Edits that keep the meaning of a summary, one at a time: what a metric should hardly notice."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np

from simllm.perturb.summaries.lexicon import Lexicon, Replacements
from simllm.perturb.summaries.numerals import other_spelling
from simllm.perturb.summaries.sentence import replace, replaceable

_ARTICLES = frozenset(("the", "a", "an"))


def case(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """As a sentence begins, in capitals, in title case."""
    yield from (text[:1].upper() + text[1:], text.upper(), text.title())


def punctuation(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Without the stop at the end, or with one; without commas."""
    yield text.removesuffix(" .") if text.endswith(" .") else f"{text} ."
    yield text.replace(" ,", "")


def articles(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Without any article."""
    yield " ".join(word for word in text.split() if word not in _ARTICLES)


def typos(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Each longer word with two neighbouring letters inside it exchanged."""
    for match in re.finditer(r"\b[a-z]{5,}\b", text):
        word = match[0]
        at = int(random.integers(1, len(word) - 2))
        typo = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        yield text[: match.start()] + typo + text[match.end() :]


def abbreviations(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Each abbreviation written out, each word that has one abbreviated."""
    return _said_otherwise(text, lexicon.abbreviations, lexicon)


def numerals(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Each small number in words, or in digits."""
    words = text.split()
    for place in range(len(words)):
        yield " ".join([*words[:place], other_spelling(words, place), *words[place + 1 :]])


def synonyms(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Each word that has a synonym, as this."""
    return _said_otherwise(text, lexicon.synonyms, lexicon)


KINDS: dict[str, Callable[[str, Lexicon, np.random.Generator], Iterator[str]]] = {
    "case": case,
    "punctuation": punctuation,
    "articles": articles,
    "typo": typos,
    "abbreviation": abbreviations,
    "numeral": numerals,
    "synonym": synonyms,
}


def _said_otherwise(text: str, table: Replacements, lexicon: Lexicon) -> Iterator[str]:
    words = text.split()
    for start, end, options in replaceable(words, table, lexicon):
        yield from (" ".join(replace(words, start, end, option)) for option in options)
