"""Edits that keep the meaning of a summary."""

from __future__ import annotations

import numpy as np

from simllm.edits.lexicon import Lexicon
from simllm.edits.numerals import other_spelling
from simllm.edits.sentence import replace, replaceable

_OPENINGS = ("this method", "this function", "method that", "function that", "helper that")


def reword(text: str, lexicon: Lexicon, random: np.random.Generator) -> str:
    """Say the same in other words; how many of them change is drawn, too."""
    strength = random.choice([0.15, 0.5, 0.9])
    for _ in range(2):
        if random.random() < strength:
            text = rephrase(text, lexicon, random)
    if random.random() < strength:
        text = _articles(text, random)
    words = with_synonyms(text.split(), lexicon, random, strength)
    words = [other_spelling(word) if random.random() < strength else word for word in words]
    if words[-1:] == ["."] and random.random() < 0.5:
        words = words[:-1]
    elif words and words[0].endswith("s") and words[0] in lexicon.verbs and random.random() < 0.1:
        words = [*_OPENINGS[random.integers(len(_OPENINGS))].split(), *words]
    return " ".join(words)


def rephrase(text: str, lexicon: Lexicon, random: np.random.Generator) -> str:
    """Put one phrase for another of the same meaning, where the text has any."""
    words = frozenset(text.split())
    fitting = [template for template in lexicon.templates if template.words <= words]
    for number in random.permutation(len(fitting)):
        template = fitting[number]
        if match := template.pattern.search(text):
            other = template.others[random.integers(len(template.others))]
            slots = {name[1:]: value for name, value in match.groupdict().items() if name != "end"}
            for name, value in slots.items():
                other = other.replace("{" + name + "}", value)
            return text[: match.start()] + other + match["end"] + text[match.end() :]
    return text


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


def _articles(text: str, random: np.random.Generator) -> str:
    """Leave out the articles, all or some of them."""
    share = random.choice([0.5, 1.0])
    kept = [word for word in text.split() if word not in ("the", "a", "an") or random.random() >= share]
    return " ".join(kept) or text
