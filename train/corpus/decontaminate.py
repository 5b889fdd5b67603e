"""Decontamination: leaving evaluation texts out of a corpus."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from simllm.errors import InputError
from simllm.io.reading import objects, text_under
from simllm.text_cleaning import clean
from train.corpus.deduplicate import words
from train.corpus.sources import match_files

_WORDS = 4  # shorter texts, such as "creates a new", are part of every fortieth comment


class ExcludedTexts:
    """Cleaned evaluation texts.

    `text in excluded` is true if the cleaned text equals, contains or is contained in an evaluation text, as
    a sequence of words without punctuation. For texts of fewer than four words, only equality counts.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._known: dict[str, bool] = {}
        self._all = {tuple(split) for text in texts if (split := words(text))}
        # Each run of four words in an evaluation text, with its places: one text that contains the other
        # shares the first four words of the shorter one.
        self._places: dict[tuple[str, ...], list[tuple[tuple[str, ...], int]]] = {}
        for text in sorted(self._all):
            for at in range(len(text) - _WORDS + 1):
                self._places.setdefault(text[at : at + _WORDS], []).append((text, at))
        self.digest = hashlib.sha256(repr(sorted(self._all)).encode()).hexdigest()

    def __contains__(self, text: str) -> bool:
        # Many texts are asked about again: sources of training pairs share their files.
        if text not in self._known:
            self._known[text] = self._is_excluded(text)
        return self._known[text]

    def _is_excluded(self, text: str) -> bool:
        own = tuple(words(text))
        if own in self._all:
            return True
        for at in range(len(own) - _WORDS + 1):
            for other, place in self._places.get(own[at : at + _WORDS], ()):
                contains_other = not place and own[at : at + len(other)] == other
                is_in_other = not at and other[place : place + len(own)] == own
                if contains_other or is_in_other:
                    return True
        return False


def read_excluded(patterns: Iterable[str]) -> ExcludedTexts:
    """Read evaluation texts from JSON-lines files of rated text pairs.

    The texts are under `reference`, `candidate`, `candidate_clean`, `a` and `b`; each line has two or more.
    """
    names = ("reference", "candidate", "candidate_clean", "a", "b")
    excluded = []
    for file in (file for pattern in patterns for file in match_files(pattern)):
        for where, row in objects(file):
            texts = [text_under(row, name, where) for name in names if name in row]
            if len(texts) < 2:
                raise InputError(f'{where}: expected texts under "reference" and "candidate", or "a" and "b"')
            excluded += texts
    return ExcludedTexts(map(clean, excluded))
