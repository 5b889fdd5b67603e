"""Edits that leave out a part of a summary, such as a condition, or one of two nouns joined by "and"."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simllm.perturb.summaries.lexicon import Lexicon
from simllm.perturb.summaries.noun_phrases import is_noun, noun_phrase_end, noun_phrase_start


def parts(text: str, lexicon: Lexicon, random: np.random.Generator) -> Iterator[str]:
    """Leave out a noun beside "and", the word "only", or a condition or exception at the end."""
    words = text.split()
    stop = ["."] if words[-1:] == ["."] else []
    for place, word in enumerate(words):
        if word == "and" and 0 < place < len(words) - 1 and is_noun(words[place + 1], lexicon):
            start = noun_phrase_start(words, place, lexicon)
            end = noun_phrase_end(words, place + 1, lexicon)
            if start < place and end > place + 1:
                yield " ".join([*words[:place], *words[end:]])
                yield " ".join([*words[:start], *words[place + 1 :]])
        elif word == "only" and len(words) > 2:
            yield " ".join([*words[:place], *words[place + 1 :]])
        elif word in ("if", "when", "unless", "except", "until", "while") and place > 2:
            # A condition at the beginning would leave no sentence.
            end = place - 1 if words[place - 1] == "," else place
            yield " ".join([*words[:end], *stop])
