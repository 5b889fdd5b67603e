"""Edits that keep the meaning of a summary."""

from __future__ import annotations

import re

import numpy as np

from simllm.edits.lexicon import Lexicon
from simllm.edits.numerals import other_spelling
from simllm.edits.sentence import replace, replaceable
from simllm.edits.structure import restructure

_DOUBLED = re.compile(r"\b(?:the|a|an|many|any|each) (?:the|a|an)\b")


def reword(text: str, lexicon: Lexicon, random: np.random.Generator) -> str:
    """Say the same in other words; how many of them change is drawn, too."""
    strength = random.choice([0.15, 0.5, 0.9])
    for _ in range(2):
        if random.random() < strength:
            text = rephrase(text, lexicon, random)
    words = text.split()
    if random.random() < strength:
        words = restructure(words, lexicon, random)
    if random.random() < strength:
        words = _fewer_articles(words, random)
    words = with_synonyms(words, lexicon, random, strength)
    words = [other_spelling(word) if random.random() < strength else word for word in words]
    if words[-1:] == ["."] and len(words) > 1 and random.random() < 0.5:
        words = words[:-1]
    return " ".join(words)


def rephrase(text: str, lexicon: Lexicon, random: np.random.Generator) -> str:
    """Put one phrase for another of the same meaning, where the text has any."""
    present = frozenset(text.split())
    fitting = [template for template in lexicon.templates if template.words <= present]
    for number in random.permutation(len(fitting)):
        template = fitting[number]
        match = template.pattern.search(text)
        if match and not any(map(_is_no_slot, match.groups())):
            other = template.others[random.integers(len(template.others))]
            for name, value in match.groupdict().items():
                other = other.replace("{" + name[1:] + "}", value)
            changed = text[: match.start()] + other + text[match.end() :]
            if not _DOUBLED.search(changed) or _DOUBLED.search(text):
                return changed
    return text


def _is_no_slot(value: str) -> bool:
    """Whether what a slot has matched is more, or less, than one thing."""
    return bool(re.search(r"[,;:.()]|^(?:and|or|not|but)\b|^\W+$", value))


def with_synonyms(words: list[str], lexicon: Lexicon, random: np.random.Generator, share: float) -> list[str]:
    """Put synonyms for this share of the words that have any, one at least."""
    places = list(replaceable(words, lexicon.synonyms, lexicon))
    if not places:
        return words
    chosen = [place for place in places if random.random() < share]
    taken = len(words) + 1
    for start, end, options in reversed(chosen or [places[random.integers(len(places))]]):
        if end <= taken:
            words = replace(words, start, end, options[random.integers(len(options))])
            taken = start
    return words


def _fewer_articles(words: list[str], random: np.random.Generator) -> list[str]:
    """Leave out the articles, all or some of them."""
    share = random.choice([0.5, 1.0])
    return [word for word in words if word not in ("the", "a", "an") or random.random() >= share] or words
