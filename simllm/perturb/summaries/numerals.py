"""Edits of numbers in a text: another spelling ("two" for "2"), or another number ("3" for "2")."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simllm.perturb.summaries.lexicon import Lexicon
from simllm.perturb.summaries.word_replacement import replace

_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_ORDINALS = "zeroth first second third fourth fifth sixth seventh eighth ninth tenth".split()
_TIMES = "once twice".split()
_JOINERS = frozenset("-./:_#")  # marks in names with numbers, such as utf - 8


def numerals(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield, for each word of `text`, a copy of the text that spells this word differently: "two" for "2".

    Only a number from 2 to 12 has another spelling. For all other words, and for a number in a name such as
    "utf-8", the copy equals `text`.

    `lexicon` and `random` are not used, but every edit function must accept them.
    """
    words = text.split()
    for place in range(len(words)):
        yield " ".join([*words[:place], other_spelling(words, place), *words[place + 1 :]])


def numbers(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield, for each number in `text`, a copy of the text with another number in its place: "3" for "2".

    The other number is usually random. The word "one" is not replaced, because it may be a pronoun. `lexicon`
    is not used, but every edit function must accept it.
    """
    words = text.split()
    for place, word in enumerate(words):
        if word != "one" and (other := other_number(word, random)) is not None:  # "one" may be a pronoun
            yield " ".join(replace(words, place, place + 1, other))


def other_spelling(words: list[str], place: int) -> str:
    """Return one word of a text in its other spelling: "two" for "2", or "2" for "two".

    Only a number from 2 to 12 has another spelling. If the word is no such number, or if the number belongs
    to a name such as "utf-8", the word is returned unchanged.

    Args:
        words: The words of the text.
        place: The index of the word in `words`.
    """
    word = words[place]
    before, after = words[:place][-1:], words[place + 1 : -1][:1]  # the last word may be a full stop
    if _JOINERS.intersection(before + after):
        return word
    if word in _WORDS[2:]:
        return str(_WORDS.index(word))
    is_small = word.isdigit() and len(word) <= 2 and 2 <= int(word) < len(_WORDS)
    return _WORDS[int(word)] if is_small else word


def other_number(word: str, random: np.random.Generator) -> str | None:
    """Return a number other than `word`; return None if `word` is not a number.

    If `word` is a number word or a whole number of up to nine digits, the other number is chosen at random,
    and is spelled in the same way: for example, "three" for "two", or "3" for "2". For other numbers, such as
    "2.5", the other number is one larger.
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
