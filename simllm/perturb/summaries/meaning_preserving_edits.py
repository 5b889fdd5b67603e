"""Edits of a summary of code that keep its meaning.

Each function makes one kind of edit, such as typos or synonyms. It yields a text for each way to make the
edit: for example, one text for each word that can get a typo.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np

from simllm.perturb.summaries.lexicon import Lexicon
from simllm.perturb.summaries.numerals import other_spelling
from simllm.perturb.summaries.synonym_replacement import synonyms
from simllm.perturb.summaries.word_replacement import replace_each

_ARTICLES = frozenset(("the", "a", "an"))


def case(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield `text` in three forms: with a capital first letter, all in capitals, and each word capitalized.

    `lexicon` and `random` are not used; all edits take the same arguments.
    """
    yield from (text[:1].upper() + text[1:], text.upper(), text.title())


def punctuation(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield `text` in two forms: with the final full stop added or removed, and without commas.

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
    """Yield one text for each word of at least five letters: `text` with a typo in this word.

    The typo swaps two neighbouring letters, which `random` chooses. If the two letters are equal, the yielded
    text equals `text`. `lexicon` is not used; all edits take the same arguments.
    """
    for match in re.finditer(r"\b[a-z]{5,}\b", text):
        word = match[0]
        at = int(random.integers(1, len(word) - 2))
        typo = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        yield text[: match.start()] + typo + text[match.end() :]


def abbreviations(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield one text for each word that can be abbreviated or written out: `text` with this change.

    For example, "config" becomes "configuration", and vice versa. `lexicon` has the abbreviations. `random`
    is not used; all edits take the same arguments.
    """
    return replace_each(text, lexicon.abbreviations, lexicon)


def numerals(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield one text for each word: `text` with this word in another spelling, such as "two" for "2".

    Only a number from 2 to 12 has another spelling. For all other words, and for a number in a name such as
    "utf-8", the yielded text equals `text`.

    `lexicon` and `random` are not used; all edits take the same arguments.
    """
    words = text.split()
    for place in range(len(words)):
        yield " ".join([*words[:place], other_spelling(words, place), *words[place + 1 :]])


KINDS: dict[str, Callable[[str, Lexicon, np.random.Generator], Iterator[str]]] = {
    "case": case,
    "punctuation": punctuation,
    "articles": articles,
    "typo": typos,
    "abbreviation": abbreviations,
    "numeral": numerals,
    "synonym": synonyms,
}
