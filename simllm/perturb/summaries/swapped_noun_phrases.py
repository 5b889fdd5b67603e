"""Edits that swap two noun phrases of a summary, such as the subject and the object."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from simllm.perturb.summaries.function_words import DETERMINERS
from simllm.perturb.summaries.lexicon import Lexicon
from simllm.perturb.summaries.noun_phrases import noun_phrase_end, noun_phrase_start

# With such a word, the swap would not change the meaning.
_SYMMETRIC = re.compile(r"compar|equal|between|distance|same|match|merge|swap|intersect|union|join|similar")
_SWAPPED_AROUND = frozenset("to from into onto with by of in on before after over than as for using".split())


def roles(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Swap the noun phrases around a preposition: "copies a to b" becomes "copies b to a"."""
    words = text.split()
    if _SYMMETRIC.search(text):
        return
    for place, word in enumerate(words):
        if word in _SWAPPED_AROUND:
            start = noun_phrase_start(words, place, lexicon)
            end = noun_phrase_end(words, place + 1, lexicon)
            left, right = words[start:place], words[place + 1 : end]
            # In "used to open", "open" is a verb.
            infinitive = word == "to" and right and lexicon.is_base(right[0])
            if left and right and left != right and not infinitive:
                yield " ".join([*words[:start], *right, word, *left, *words[end:]])


def agents(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Swap subject and object: "a dog is chasing a cat" becomes "a cat is chasing a dog"."""
    words = text.split()
    if _SYMMETRIC.search(text):
        return
    for place in range(1, len(words) - 1):
        verb = place
        if words[place] in ("is", "are", "was", "were"):
            # "is chasing", "is chased by".
            verb = place + 1
            if not words[verb].endswith(("ing", "ed")):
                continue
        elif words[place] not in lexicon.verb_forms or words[place] in lexicon.nouns:
            continue
        after = verb + 1 + (words[verb + 1 : verb + 2] == ["by"])
        start = noun_phrase_start(words, place, lexicon, first=0)
        end = noun_phrase_end(words, after, lexicon)
        left, right = words[start:place], words[after:end]
        named = {*left[:1], *right[:1]} & DETERMINERS
        # Without a determiner, `left` is often no noun.
        if left and right and left != right and named:
            yield " ".join([*words[:start], *right, *words[place:after], *left, *words[end:]])
