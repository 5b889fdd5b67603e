"""Edits of the surface of a summary: typos, upper and lower case, punctuation, and left-out articles."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from simllm.perturb.summaries.lexicon import Lexicon

_ARTICLES = frozenset(("the", "a", "an"))


def case(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield `text` in three forms: with a capital first letter, all in capitals, and each word capitalized.

    `lexicon` and `random` are not used, but every edit function must accept them.
    """
    yield from (text[:1].upper() + text[1:], text.upper(), text.title())


def punctuation(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield `text` in two forms: with the final full stop added or removed, and without commas.

    `lexicon` and `random` are not used, but every edit function must accept them.
    """
    yield text.removesuffix(" .") if text.endswith(" .") else f"{text} ."
    yield text.replace(" ,", "")


def articles(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield the text without the articles "the", "a" and "an".

    `lexicon` and `random` are not used, but every edit function must accept them.
    """
    yield " ".join(word for word in text.split() if word not in _ARTICLES)


def typos(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield one text for each word of at least five letters: `text` with a typo in this word.

    The typo swaps two neighbouring letters, which `random` chooses. If the two letters are equal, the yielded
    text equals `text`. `lexicon` is not used, but every edit function must accept it.
    """
    for match in re.finditer(r"\b[a-z]{5,}\b", text):
        word = match[0]
        at = int(random.integers(1, len(word) - 2))
        typo = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        yield text[: match.start()] + typo + text[match.end() :]


def fewer_articles(words: list[str], random: np.random.Generator) -> list[str]:
    """Remove the articles "the", "a" and "an" from the words of a text.

    With equal probability, all articles are removed, or each is removed with probability 0.5. If no words
    would be left, the words are returned unchanged.
    """
    share = random.choice([0.5, 1.0])
    return [word for word in words if word not in _ARTICLES or random.random() >= share] or words
