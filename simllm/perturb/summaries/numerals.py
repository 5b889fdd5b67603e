"""Edits of numbers in a text: another spelling ("two" for "2"), or another number ("3" for "2")."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simllm.perturb.summaries.lexicon import Lexicon
from simllm.perturb.summaries.word_replacement import replace

_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_ORDINALS = "zeroth first second third fourth fifth sixth seventh eighth ninth tenth".split()
_TIMES = "once twice".split()
# Marks in names with numbers, such as "utf - 8".
_JOINERS = frozenset("-./:_#")


def numerals(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Spell each word differently, if it is a number with another spelling: "two" for "2"."""
    words = text.split()
    for place in range(len(words)):
        yield " ".join([*words[:place], other_spelling(words, place), *words[place + 1 :]])


def numbers(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Replace each number by another one: "3" for "2"."""
    words = text.split()
    for place, word in enumerate(words):
        # "one" may be a pronoun.
        if word != "one" and (other := other_number(word, random)) is not None:
            yield " ".join(replace(words, place, place + 1, other))


def other_spelling(words: list[str], place: int) -> str:
    """Return the other spelling of a number from 2 to 12, such as "two" for "2"; any other word unchanged.

    A number that belongs to a name, such as "utf-8", is unchanged, too.
    """
    word = words[place]
    # The last word may be a full stop, so it does not count as a joiner.
    before, after = words[:place][-1:], words[place + 1 : -1][:1]
    if _JOINERS.intersection(before + after):
        return word
    if word in _WORDS[2:]:
        return str(_WORDS.index(word))
    is_small = word.isdigit() and len(word) <= 2 and 2 <= int(word) < len(_WORDS)
    return _WORDS[int(word)] if is_small else word


def other_number(word: str, random: np.random.Generator) -> str | None:
    """Return another number in the same spelling; None if a word is not a number.

    It is random for number words and whole numbers of up to nine digits, and else one larger.
    """
    for series in (_WORDS, _ORDINALS, _TIMES):
        if word in series:
            others = [other for other in series if other != word][:7]
            return others[random.integers(len(others))]
    try:
        value = float(word)
    except ValueError:
        return None
    if not word.isdigit() or len(word) > 9:
        return f"{value + 1:.15g}" if np.isfinite(value) else None
    near = [int(value) + 1, int(value) * 2 or 3, max(int(value) - 1, 0), int(value) + 10]
    others = [str(number) for number in near if number != int(value)]
    return others[random.integers(len(others))]
