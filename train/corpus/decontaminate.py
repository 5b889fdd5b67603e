"""Decontamination: texts that a model will be evaluated on are kept out of the corpus."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from simllm.errors import InputError
from simllm.io.files import objects, text_under
from simllm.text import clean
from train.corpus.sources import match_files
from train.corpus.text_identity import words

_WORDS = 4  # of a shorter text, such as "creates a new", one comment in forty is made


class ExcludedTexts:
    """Texts of evaluation sets; `text in excluded` asks for a cleaned text.

    The answer is yes if the text is equal to one of them, contains one, or is a part of one, word
    for word. Texts of fewer than four words count only if they are equal.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        """Take cleaned texts."""
        self._all = {tuple(found) for text in texts if (found := words(text))}
        self._places: dict[tuple[str, ...], list[tuple[tuple[str, ...], int]]] = {}
        for text in sorted(self._all):
            for at in range(len(text) - _WORDS + 1):
                self._places.setdefault(text[at : at + _WORDS], []).append((text, at))
        self.digest = hashlib.sha256(repr(sorted(self._all)).encode()).hexdigest()

    def __contains__(self, text: str) -> bool:
        mine = tuple(words(text))
        if mine in self._all:
            return True
        for at in range(len(mine) - _WORDS + 1):
            for other, place in self._places.get(mine[at : at + _WORDS], ()):
                inside = not place and mine[at : at + len(other)] == other
                around = not at and other[place : place + len(mine)] == mine
                if inside or around:
                    return True
        return False


def read_excluded(patterns: Iterable[str]) -> ExcludedTexts:
    """Return the texts of rated files: references and candidates, raw and as their authors cleaned them."""
    names = ("reference", "candidate", "candidate_clean", "a", "b")
    found = []
    for file in (file for pattern in patterns for file in match_files(pattern)):
        for where, row in objects(file):
            texts = [text_under(row, name, where) for name in names if name in row]
            if len(texts) < 2:
                raise InputError(f'{where}: expected texts under "reference" and "candidate", or "a" and "b"')
            found += texts
    return ExcludedTexts(map(clean, found))
