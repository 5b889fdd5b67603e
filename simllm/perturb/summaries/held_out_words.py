"""Held-out word pairs in all inflected forms."""

from __future__ import annotations

from collections.abc import Collection
from itertools import product

from simllm.perturb.summaries.function_words import CONJUNCTIONS, DETERMINERS, PREPOSITIONS
from simllm.perturb.summaries.inflection import Irregular, word_family
from simllm.text_cleaning import clean

# No text can do without these words, so pairs with one of them are ignored.
_CLOSED = DETERMINERS | PREPOSITIONS | CONJUNCTIONS


class HeldOutWords:
    """Held-out word pairs; each word may be given in any form, such as "open" or "opened".

    Attributes:
        pairs: Frozensets of two words, in all forms: ("open", "close") also gives {"opened", "closes"}.
        words: All words of these pairs, in all forms.
    """

    def __init__(self, pairs: Collection[tuple[str, str]], irregular: Irregular) -> None:
        self.pairs = {
            frozenset(forms)
            for a, b in (map(clean, pair) for pair in pairs)
            if not _CLOSED & {a, b}
            for forms in product(word_family(a, irregular), word_family(b, irregular))
        }
        self.words = frozenset(word for pair in self.pairs for word in pair)

    def holds_out(self, a: str, b: str) -> bool:
        """Return whether two phrases are a held-out pair, or differ in the words of one.

        "open file" and "close file" differ in the words of ("open", "close").
        """
        if frozenset((a, b)) in self.pairs:
            return True
        left, right = set(a.split()), set(b.split())
        return any(frozenset(pair) in self.pairs for pair in product(left - right, right - left))
