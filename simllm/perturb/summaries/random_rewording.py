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

_WRONG = re.compile(r"\b(?:the|an?|many|any|each) (?:the|an?)\b|\bif to\b")


def reword(text: str, lexicon: Lexicon, random: np.random.Generator) -> str:
    """Reword a summary by several random rules that keep the meaning.

    The rules replace phrases and words by synonyms, change the structure of the sentence, remove articles or
    the full stop, and write numbers as digits or words.

    Args:
        text: The cleaned summary.
        lexicon: The word lists, such as synonyms.
        random: The generator that chooses the rules, and the words that the rules change.

    Returns:
        The reworded summary; `text` if no rule fits.
    """
    strength = random.choice([0.15, 0.5, 0.9])  # probability of each rule
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
    """Replace one random phrase of a text by another phrase with the same meaning.

    For example, "returns true if it is empty" becomes "checks whether it is empty".

    Args:
        text: The text, in the cleaned form that `simllm.text_cleaning.clean` returns.
        lexicon: The word lists. The attribute `templates` has the phrases that can be replaced, and their
            replacements.
        random: The generator that chooses the phrase to replace and the new phrase.

    Returns:
        The new text; `text` if no phrase fits.
    """
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
    """Replace a phrase in a text by another phrase with the same meaning.

    For example, the old phrase "returns the {1}" and the new phrase "gets the {1}" turn "returns the first
    item" into "gets the first item". `{1}` is a slot, which stands for one to eight words.

    Args:
        text: The text, in the cleaned form that `simllm.text_cleaning.clean` returns.
        template: The old phrase.
        other: The new phrase. Its slots get the words that the same slots of the old phrase stand for.
        lexicon: The lexicon, which tells which words are verbs.

    Returns:
        The new text. None if the old phrase is not in the text, or if the replacement would probably be
        wrong:

        - The words of a slot contain "and" before a verb. They probably belong to two clauses.
        - The new phrase has a slot before "'s", such as "the {1}'s size", and the slot has more than three
          words.
    """
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
