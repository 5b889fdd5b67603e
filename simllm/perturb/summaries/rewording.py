"""Rewording of summaries by rule."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np

from simllm.perturb.summaries.lexicon import Lexicon
from simllm.perturb.summaries.numerals import other_spelling
from simllm.perturb.summaries.restructuring import restructure
from simllm.perturb.summaries.sentence import replace, replaceable
from simllm.perturb.summaries.templates import Template
from simllm.text_cleaning import clean

_WRONG = re.compile(r"\b(?:the|an?|many|any|each) (?:the|an?)\b|\bif to\b")


def reword(text: str, lexicon: Lexicon, random: np.random.Generator) -> str:
    """Reword a summary by random rules; a text that no rule fits is returned unchanged."""
    strength = random.choice([0.15, 0.5, 0.9])  # probability of each rule
    for _ in range(2):
        if random.random() < strength:
            text = rephrase(text, lexicon, random)
    words = text.split()
    if words and random.random() < strength:
        words = restructure(words, lexicon, random)
    if random.random() < strength:
        words = _fewer_articles(words, random)
    words = with_synonyms(words, lexicon, random, strength)
    words = [
        other_spelling(words, place) if random.random() < strength else word
        for place, word in enumerate(words)
    ]
    if words[-1:] == ["."] and random.random() < 0.5:
        words = words[:-1]
    return clean(" ".join(words)) or text


def rephrase(text: str, lexicon: Lexicon, random: np.random.Generator) -> str:
    """Replace one phrase of the lexicon by another one with the same meaning, if there is one."""
    words = frozenset(text.split())
    fitting = [template for template in lexicon.templates if template.words <= words]
    for number in random.permutation(len(fitting)):
        template = fitting[number]
        other = template.others[random.integers(len(template.others))]
        rephrased = _replace_phrase(text, template, other, lexicon)
        if rephrased and not _WRONG.search(rephrased):
            return rephrased
    return text


def _replace_phrase(text: str, template: Template, other: str, lexicon: Lexicon) -> str | None:
    """Replace the phrase of a template by another one; return None if one of them does not fit."""
    match = template.pattern.search(text)
    if match is None:
        return None
    for name, value in match.groupdict().items():
        if name != "end":
            slot, words = f"{{{name[1:]}}}", value.split()
            # After `it and returns`, another clause begins.
            has_clause = any(a == "and" and b in lexicon.verb_forms for a, b in pairwise(words))
            if has_clause or (f"{slot}'s" in other and len(words) > 3):
                return None
            other = other.replace(slot, value)
    return text[: match.start()] + other + match["end"] + text[match.end() :]


def with_synonyms(words: list[str], lexicon: Lexicon, random: np.random.Generator, share: float) -> list[str]:
    """Replace words by synonyms: on average a `share` of the words that have any, and at least one."""
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
    """Remove all articles, or about half of them."""
    share = random.choice([0.5, 1.0])
    return [word for word in words if word not in ("the", "a", "an") or random.random() >= share] or words
