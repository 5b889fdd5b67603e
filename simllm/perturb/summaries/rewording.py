"""Rewordings that keep the meaning of a summary.

`KINDS` has edits of one kind each; `reword` combines them with rules for grammar and phrases.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from simllm.perturb.summaries.inflection import NUMBER_WORDS
from simllm.perturb.summaries.lexicon import Lexicon, Template, replace, replace_each, replaceable
from simllm.perturb.summaries.restructuring import restructure
from simllm.text_cleaning import clean


def case(text: str) -> Iterator[str]:
    """Yield a text with a capital first letter, all in capitals, and with each word capitalized."""
    yield from (text[:1].upper() + text[1:], text.upper(), text.title())


def punctuation(text: str) -> Iterator[str]:
    """Yield a text with the final full stop added or removed, and without commas."""
    yield text.removesuffix(" .") if text.endswith(" .") else f"{text} ."
    yield text.replace(" ,", "")


_ARTICLES = frozenset(("the", "a", "an"))


def articles(text: str) -> Iterator[str]:
    """Leave out all articles."""
    yield " ".join(word for word in text.split() if word not in _ARTICLES)


def typos(text: str, random: np.random.Generator) -> Iterator[str]:
    """Swap two neighbouring letters in a word of at least five letters; equal letters leave it unchanged."""
    for match in re.finditer(r"\b[a-z]{5,}\b", text):
        word = match[0]
        at = int(random.integers(1, len(word) - 2))
        typo = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        yield text[: match.start()] + typo + text[match.end() :]


# Marks in names with numbers, such as "utf - 8".
_JOINERS = frozenset("-./:_#")


def numerals(text: str) -> Iterator[str]:
    """Spell each word differently, if it is a number with another spelling: "two" for "2"."""
    words = text.split()
    for place in range(len(words)):
        yield " ".join([*words[:place], _other_spelling(words, place), *words[place + 1 :]])


def _other_spelling(words: list[str], place: int) -> str:
    """Return the other spelling of a number from 2 to 12, such as "two" for "2"; any other word unchanged.

    A number that belongs to a name, such as "utf-8", is unchanged, too.
    """
    word = words[place]
    # The last word may be a full stop, so it does not count as a joiner.
    before, after = words[:place][-1:], words[place + 1 : -1][:1]
    if _JOINERS.intersection(before + after):
        return word
    if word in NUMBER_WORDS[2:]:
        return str(NUMBER_WORDS.index(word))
    is_small = word.isdigit() and len(word) <= 2 and 2 <= int(word) < len(NUMBER_WORDS)
    return NUMBER_WORDS[int(word)] if is_small else word


def abbreviations(text: str, lexicon: Lexicon) -> Iterator[str]:
    """Abbreviate a word or write it out: "config" becomes "configuration", and vice versa."""
    return replace_each(text, lexicon.abbreviations, lexicon)


def synonyms(text: str, lexicon: Lexicon) -> Iterator[str]:
    """Replace a word or short phrase by a synonym; there is one text for each replacement."""
    return replace_each(text, lexicon.synonyms, lexicon)


# An edit takes a text, the lexicon and a random generator; its function takes what it needs of them.
KINDS: dict[str, Callable[[str, Lexicon, np.random.Generator], Iterator[str]]] = {
    "case": lambda text, *_: case(text),
    "punctuation": lambda text, *_: punctuation(text),
    "articles": lambda text, *_: articles(text),
    "typo": lambda text, _, random: typos(text, random),
    "abbreviation": lambda text, lexicon, _: abbreviations(text, lexicon),
    "numeral": lambda text, *_: numerals(text),
    "synonym": lambda text, lexicon, _: synonyms(text, lexicon),
}
# Two determiners in a row, or "if to", show that a phrase was put where it does not fit.
_WRONG = re.compile(r"\b(?:the|an?|many|any|each) (?:the|an?)\b|\bif to\b")


def reword(text: str, lexicon: Lexicon, random: np.random.Generator) -> str:
    """Reword a summary by several random rules that keep the meaning; return it unchanged if no rule fits."""
    # The probability of each rule. It varies, so that some summaries change little and others much.
    strength = random.choice([0.15, 0.5, 0.9])
    for _ in range(2):
        if random.random() < strength:
            text = _rephrase(text, lexicon, random)
    words = text.split()
    if words and random.random() < strength:
        words = restructure(words, lexicon, random)
    if random.random() < strength:
        words = _fewer_articles(words, random)
    words = _replace_randomly(words, lexicon, random, strength)
    words = [
        _other_spelling(words, place) if random.random() < strength else word
        for place, word in enumerate(words)
    ]
    if words[-1:] == ["."] and random.random() < 0.5:
        words = words[:-1]
    return clean(" ".join(words)) or text


def _rephrase(text: str, lexicon: Lexicon, random: np.random.Generator) -> str:
    """Replace a random phrase: "returns true if it is empty" becomes "checks whether it is empty"."""
    words = frozenset(text.split())
    # A cheap test by words comes before the slow search by regular expressions.
    fitting = [template for template in lexicon.templates if template.words <= words]
    for number in random.permutation(len(fitting)):
        template = fitting[number]
        other = template.others[random.integers(len(template.others))]
        rephrased = _replace_phrase(text, template, other, lexicon)
        if rephrased and not _WRONG.search(rephrased):
            return rephrased
    return text


def _replace_phrase(text: str, template: Template, other: str, lexicon: Lexicon) -> str | None:
    """Replace a phrase; None if it is not in the text, or if the replacement would probably be wrong."""
    match = template.pattern.search(text)
    if match is None:
        return None
    for name, value in match.groupdict().items():
        if name != "end":
            slot, words = f"{{{name[1:]}}}", value.split()
            # After `it and returns`, another clause begins.
            has_clause = any(a == "and" and b in lexicon.verb_forms for a, b in pairwise(words))
            # A long owner before "'s" is hard to read.
            if has_clause or (f"{slot}'s" in other and len(words) > 3):
                return None
            other = other.replace(slot, value)
    return text[: match.start()] + other + match["end"] + text[match.end() :]


def _fewer_articles(words: list[str], random: np.random.Generator) -> list[str]:
    """Remove all articles, or each with probability 0.5; both happen equally often."""
    share = random.choice([0.5, 1.0])
    return [word for word in words if word not in _ARTICLES or random.random() >= share] or words


def _replace_randomly(
    words: list[str], lexicon: Lexicon, random: np.random.Generator, probability: float
) -> list[str]:
    """Replace each word that has synonyms with the given probability, but at least one of these words."""
    places = list(replaceable(words, lexicon.synonyms, lexicon))
    if not places:
        return words
    chosen = [place for place in places if random.random() < probability]
    taken = len(words) + 1
    for start, end, options in reversed(chosen or [places[random.integers(len(places))]]):
        # From the end to the beginning, so that indices stay valid; overlapping phrases are skipped.
        if end <= taken:
            words = replace(words, start, end, options[random.integers(len(options))])
            taken = start
    return words
