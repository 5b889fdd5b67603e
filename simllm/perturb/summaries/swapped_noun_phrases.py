"""Edits that swap two noun phrases of a summary, such as the subject and the object."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from simllm.perturb.summaries.function_words import DETERMINERS
from simllm.perturb.summaries.lexicon import Lexicon
from simllm.perturb.summaries.noun_phrases import noun_phrase_end, noun_phrase_start

_SYMMETRIC = re.compile(r"compar|equal|between|distance|same|match|merge|swap|intersect|union|join|similar")
_SWAPPED_AROUND = frozenset("to from into onto with by of in on before after over than as for using".split())


def roles(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield one text for each preposition between two noun phrases: `text` with the noun phrases swapped.

    For example, "copies a to b" becomes "copies b to a". If `text` has a word such as "compare", nothing is
    yielded, because the swap would not change the meaning. `lexicon` tells which words are verbs and nouns.
    `random` is not used, but every edit function must accept it.
    """
    words = text.split()
    if _SYMMETRIC.search(text):
        return
    for place, word in enumerate(words):
        if word in _SWAPPED_AROUND:
            start = noun_phrase_start(words, place, lexicon)
            end = noun_phrase_end(words, place + 1, lexicon)
            left, right = words[start:place], words[place + 1 : end]
            infinitive = word == "to" and right and lexicon.is_base(right[0])
            if left and right and left != right and not infinitive:
                yield " ".join([*words[:start], *right, word, *left, *words[end:]])


def agents(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Yield one text for each verb with a subject and an object: `text` with subject and object swapped.

    For example, "a dog is chasing a cat" becomes "a cat is chasing a dog". If `text` has a word such as
    "compare", nothing is yielded, because the swap would not change the meaning. `lexicon` tells which words
    are verbs and nouns. `random` is not used, but every edit function must accept it.
    """
    words = text.split()
    if _SYMMETRIC.search(text):
        return
    for place in range(1, len(words) - 1):
        verb = place
        if words[place] in ("is", "are", "was", "were"):
            verb = place + 1  # "is chasing", "is chased by"
            if not words[verb].endswith(("ing", "ed")):
                continue
        elif words[place] not in lexicon.verb_forms or words[place] in lexicon.nouns:
            continue
        after = verb + 1 + (words[verb + 1 : verb + 2] == ["by"])
        start = noun_phrase_start(words, place, lexicon, first=0)
        end = noun_phrase_end(words, after, lexicon)
        left, right = words[start:place], words[after:end]
        named = {*left[:1], *right[:1]} & DETERMINERS
        if left and right and left != right and named:  # without a determiner, `left` is often no noun
            yield " ".join([*words[:start], *right, *words[place:after], *left, *words[end:]])
