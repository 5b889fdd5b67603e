"""Held-out word pairs, such as ("open", "close"), which are kept for tests and left out of training data."""

from __future__ import annotations

from collections.abc import Collection
from itertools import product

from simllm.perturb.summaries.function_words import CONJUNCTIONS, DETERMINERS, PREPOSITIONS
from simllm.perturb.summaries.inflection import Irregular, word_family
from simllm.text_cleaning import clean

_CLOSED = DETERMINERS | PREPOSITIONS | CONJUNCTIONS  # no text can do without these words


class HeldOutWords:
    """Held-out word pairs (pairs that are kept out of training data), in all inflected forms.

    Args:
        pairs: The held-out pairs. Each word may have any form, such as "open" or "opened". Pairs with a
            determiner, preposition or conjunction are ignored, because no text can do without these words.
        irregular: The forms of irregular words.

    Attributes:
        pairs: The held-out pairs in all forms, each as a frozenset of two words. For example, the pair
            ("open", "close") also gives {"opened", "closes"}.
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
        """Return whether two phrases are a held-out word pair, or differ in the words of such a pair.

        Held-out word pairs are kept for tests and left out of training data. Two phrases differ in the words
        of a pair if only one phrase has the first word, and only the other phrase has the second word. For
        example, "open file" and "close file" differ in the words of the pair ("open", "close").

        Args:
            a: A cleaned word or phrase.
            b: Another cleaned word or phrase.
        """
        if frozenset((a, b)) in self.pairs:
            return True
        left, right = set(a.split()), set(b.split())
        return any(frozenset(pair) in self.pairs for pair in product(left - right, right - left))
