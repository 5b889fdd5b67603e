"""Edits that add or remove a negation in a summary, such as "not", "cannot", "unless" or "without"."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from simllm.perturb.summaries.function_words import DETERMINERS
from simllm.perturb.summaries.inflection import THIRD_PERSON
from simllm.perturb.summaries.lexicon import Lexicon

# Patterns that add or remove a negation. (?!…) prevents double negations. `if` is not replaced if it
# means `whether`.
_ASKING = (
    "check checks checking test tests determine determines verify verifies tell tells see know out ask asks"
)
_NOT_ASKING = "".join(rf"(?<!\b{word} )" for word in _ASKING.split())
_NEGATIONS = [
    (re.compile(pattern), new)
    for pattern, new in [
        (r"\b(is|are|was|were|should|must|may|will|does|do|did|could)\b(?! not\b)", r"\1 not"),
        (r"\b(is|are|was|were|should|must|may|will|does|could) not\b", r"\1"),
        (r"\bdo not (\w+)\b", r"\1"),
        (r"\bcan\b(?! not\b|')", "cannot"),
        (r"\b(?:cannot|can not|can't)\b", "can"),
        (r"\b(is|are|was|were|does|do|did|should|could|would)n't\b", r"\1"),
        (rf"{_NOT_ASKING}\bif (?!not\b)", "unless "),
        (r"\bwhen (?!to\b)", "unless "),
        (r"\bunless\b", "if"),
        (r"\bnon - ", ""),
        (r"\bno\b", "some"),
        (r"\bnot\b ", ""),
        (r"\bwithout\b", "with"),
        (r"\bwith\b(?! no\b)", "without"),
        (r"\bnever\b", "always"),
    ]
]


def negations(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Add or remove a negation: "is empty" becomes "is not empty"."""
    for pattern, new in _NEGATIONS:
        for match in pattern.finditer(text):
            yield text[: match.start()] + match.expand(new) + text[match.end() :]
    words = text.split()
    for place, word in enumerate(words):
        forms = lexicon.verb_forms.get(word, ("",))
        is_noun = word in lexicon.nouns
        # Auxiliaries are negated by the patterns above.
        if forms[0] in ("", "be", "do", "have"):
            continue
        # "the calls" and "updates" in "gets updates" may be nouns.
        if word == forms[THIRD_PERSON] and not (place and (is_noun or words[place - 1] in DETERMINERS)):
            yield " ".join([*words[:place], "does not", forms[0], *words[place + 1 :]])
        elif word == forms[0] and not place and (not is_noun or DETERMINERS.intersection(words[1:2])):
            yield f"do not {text}"
