"""Texts by the words that the lexicon has an opposite or a neighbour for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simllm.edits.lexicon import Lexicon


class ByWord:
    """Draws texts by such a word, its chance growing with the root of how many texts have it.

    Between all words alike and as they come: a word that is rare is learned, too.
    """

    def __init__(self, texts: Sequence[str], lexicon: Lexicon) -> None:
        """Find the words in the texts."""
        known = {word for table in (lexicon.opposites, lexicon.neighbours) for word in table}
        self._found: dict[str, list[int]] = {}
        for number, text in enumerate(texts):
            for word in known.intersection(text.split()):
                self._found.setdefault(word, []).append(number)
        self._words = sorted(self._found)
        roots = np.sqrt([len(self._found[word]) for word in self._words])
        self._chances = roots / roots.sum()

    def __bool__(self) -> bool:
        return bool(self._words)

    def draw(self, random: np.random.Generator) -> tuple[str, int]:
        """A word, and the number of a text that has it."""
        word = self._words[random.choice(len(self._words), p=self._chances)]
        return word, int(random.choice(self._found[word]))
