"""Edits that keep the meaning of a summary.

Each kind of edit is a function. It yields one edited text for each place that the edit fits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np

from simllm.perturb.summaries.lexicon import Lexicon, Replacements
from simllm.perturb.summaries.numerals import other_spelling
from simllm.perturb.summaries.sentence import replace, replaceable

_ARTICLES = frozenset(("the", "a", "an"))


def case(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield the text with a capital first letter, in capitals, and with a capital in each word.

    `lexicon` and `random` are not used; all edits take the same arguments.
    """
    yield from (text[:1].upper() + text[1:], text.upper(), text.title())


def punctuation(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield the text with its final full stop added or removed, and the text without commas.

    `lexicon` and `random` are not used; all edits take the same arguments.
    """
    yield text.removesuffix(" .") if text.endswith(" .") else f"{text} ."
    yield text.replace(" ,", "")


def articles(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield the text without the articles "the", "a" and "an".

    `lexicon` and `random` are not used; all edits take the same arguments.
    """
    yield " ".join(word for word in text.split() if word not in _ARTICLES)


def typos(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield the text with a typo, for each word of at least five letters: two neighbouring letters swapped.

    `random` chooses the letters. `lexicon` is not used; all edits take the same arguments.
    """
    for match in re.finditer(r"\b[a-z]{5,}\b", text):
        word = match[0]
        at = int(random.integers(1, len(word) - 2))
        typo = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        yield text[: match.start()] + typo + text[match.end() :]


def abbreviations(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield the text with one word abbreviated or one abbreviation written out, for each such word.

    `lexicon` has the abbreviations. `random` is not used; all edits take the same arguments.
    """
    return _replace_each(text, lexicon.abbreviations, lexicon)


def numerals(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield the text with one small number in its other spelling ("2" or "two"), for each word.

    If a word is not a small number, the text is yielded unchanged. `lexicon` and `random` are not used; all
    edits take the same arguments.
    """
    words = text.split()
    for place in range(len(words)):
        yield " ".join([*words[:place], other_spelling(words, place), *words[place + 1 :]])


def synonyms(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield the text with one word replaced by a synonym, for each word and each of its synonyms.

    `lexicon` has the synonyms. `random` is not used; all edits take the same arguments.
    """
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
    """Yield the text with one word replaced, for each word and each of its replacements in `table`.

    `lexicon` tells which words are verbs and nouns, because a replacement must have the same part of
    speech.
    """
    words = text.split()
    for start, end, options in replaceable(words, table, lexicon):
        yield from (" ".join(replace(words, start, end, option)) for option in options)
