"""Random rewording of summaries by rules that keep the meaning."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np

from simllm.perturb.summaries.grammatical_rewording import restructure
from simllm.perturb.summaries.lexicon import Lexicon
from simllm.perturb.summaries.numerals import other_spelling
from simllm.perturb.summaries.phrase_templates import Template
from simllm.perturb.summaries.synonyms_and_abbreviations import replace_randomly
from simllm.perturb.summaries.typos_case_and_articles import fewer_articles
from simllm.text_cleaning import clean

# Two determiners in a row, or "if to", show that a phrase was put where it does not fit.
_WRONG = re.compile(r"\b(?:the|an?|many|any|each) (?:the|an?)\b|\bif to\b")


def reword(text: str, lexicon: Lexicon, random: np.random.Generator) -> str:
    """Reword a summary by several random rules that keep the meaning; return it unchanged if no rule fits."""
    # The probability of each rule. It varies, so that some summaries change little and others much.
    strength = random.choice([0.15, 0.5, 0.9])
    for _ in range(2):
        if random.random() < strength:
            text = rephrase(text, lexicon, random)
    words = text.split()
    if words and random.random() < strength:
        words = restructure(words, lexicon, random)
    if random.random() < strength:
        words = fewer_articles(words, random)
    words = replace_randomly(words, lexicon, random, strength)
    words = [
        other_spelling(words, place) if random.random() < strength else word
        for place, word in enumerate(words)
    ]
    if words[-1:] == ["."] and random.random() < 0.5:
        words = words[:-1]
    return clean(" ".join(words)) or text


def rephrase(text: str, lexicon: Lexicon, random: np.random.Generator) -> str:
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
