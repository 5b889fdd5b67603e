"""Held-out word pairs: a model is tested on them, so its training data must not contain them."""

from __future__ import annotations

from collections.abc import Collection
from itertools import product

from simllm.perturb.summaries.function_words import CONJUNCTIONS, DETERMINERS, PREPOSITIONS
from simllm.perturb.summaries.inflection import Irregular, word_family
from simllm.text_cleaning import clean

_CLOSED = DETERMINERS | PREPOSITIONS | CONJUNCTIONS  # no text can do without these words


class HeldOutWords:
    """Held-out word pairs with all forms of both words.

    Pairs with a determiner, preposition or conjunction are left out.

    Args:
        pairs: The word pairs.
        irregular: Irregular forms of words.
    """

    def __init__(self, pairs: Collection[tuple[str, str]], irregular: Irregular) -> None:
        self.pairs = {
            frozenset(forms)
            for a, b in pairs
            if not _CLOSED & {a, b}
            for forms in product(word_family(clean(a), irregular), word_family(clean(b), irregular))
        }
        self.words = frozenset(word for pair in self.pairs for word in pair)

    def holds_out(self, a: str, b: str) -> bool:
        """Return whether two cleaned phrases are a held-out pair, or differ in one."""
        if frozenset((a, b)) in self.pairs:
            return True
        left, right = set(a.split()), set(b.split())
        return any(frozenset(pair) in self.pairs for pair in product(left - right, right - left))
