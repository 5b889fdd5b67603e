"""Held-out pairs of words, by which a model is tested; its training data must not contain them."""

from __future__ import annotations

from collections.abc import Collection
from itertools import product

from simllm.perturb.summaries.function_words import CONJUNCTIONS, DETERMINERS, PREPOSITIONS
from simllm.perturb.summaries.inflection import Irregular, family
from simllm.text import clean

_CLOSED = DETERMINERS | PREPOSITIONS | CONJUNCTIONS  # too few to learn a language without them


class HeldOut:
    """Held-out pairs, each of the two words in all of its forms, but for pairs of closed classes."""

    def __init__(self, pairs: Collection[tuple[str, str]], irregular: Irregular) -> None:
        self.pairs = {
            frozenset(forms)
            for a, b in pairs
            if not _CLOSED & {a, b}
            for forms in product(family(clean(a), irregular), family(clean(b), irregular))
        }
        self.words = frozenset(word for pair in self.pairs for word in pair)

    def between(self, a: str, b: str) -> bool:
        """Whether two cleaned phrases are a held-out pair, or differ by one."""
        if frozenset((a, b)) in self.pairs:
            return True
        left, right = set(a.split()), set(b.split())
        return any(frozenset(pair) in self.pairs for pair in product(left - right, right - left))
