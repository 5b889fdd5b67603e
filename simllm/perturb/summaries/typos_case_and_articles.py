"""Edits of the surface of a summary: typos, upper and lower case, punctuation, and left-out articles."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from simllm.perturb.summaries.lexicon import Lexicon

_ARTICLES = frozenset(("the", "a", "an"))


def case(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield a text with a capital first letter, all in capitals, and with each word capitalized."""
    yield from (text[:1].upper() + text[1:], text.upper(), text.title())


def punctuation(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield a text with the final full stop added or removed, and without commas."""
    yield text.removesuffix(" .") if text.endswith(" .") else f"{text} ."
    yield text.replace(" ,", "")


def articles(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Leave out all articles."""
    yield " ".join(word for word in text.split() if word not in _ARTICLES)


def typos(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Swap two neighbouring letters in a word of at least five letters; equal letters leave it unchanged."""
    for match in re.finditer(r"\b[a-z]{5,}\b", text):
        word = match[0]
        at = int(random.integers(1, len(word) - 2))
        typo = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        yield text[: match.start()] + typo + text[match.end() :]


def fewer_articles(words: list[str], random: np.random.Generator) -> list[str]:
    """Remove all articles, or each with probability 0.5; both happen equally often."""
    share = random.choice([0.5, 1.0])
    return [word for word in words if word not in _ARTICLES or random.random() >= share] or words
