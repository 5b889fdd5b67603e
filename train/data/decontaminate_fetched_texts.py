"""Decontamination of the fetched training texts: recognition of texts that also occur in evaluation data."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORD = re.compile("[a-z0-9]+")
_EQUAL = 3  # words; shorter evaluation texts do not exclude equal texts
_PREFIX = 6  # words; shorter texts do not exclude texts that begin with them


def key(text: str) -> str:
    """Return a text's words in lower case, without punctuation, as a key for finding equal texts."""
    return " ".join(_WORD.findall(text.lower()))


class EvaluationTexts:
    """Texts of the evaluation data, which must not occur in the training texts.

    `text in evaluation_texts` is true in two cases:

    - The text equals an evaluation text of at least three words.
    - The text begins with an evaluation text, or an evaluation text begins with the text. The shorter of the
      two must have at least six words.

    Case and punctuation are ignored.

    Args:
        texts: The evaluation texts.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        keys = {key(text) for text in texts}
        self._keys = {one for one in keys if one.count(" ") + 1 >= _EQUAL}
        self._by_start: dict[str, list[str]] = {}
        for one in keys:
            if start := _start(one):
                self._by_start.setdefault(start, []).append(one)

    def __contains__(self, text: str) -> bool:
        own = key(text)
        if own in self._keys:
            return True
        others = self._by_start.get(_start(own), ())
        return any(
            (own + " ").startswith(other + " ") or (other + " ").startswith(own + " ") for other in others
        )


def _start(key: str) -> str:
    """Return the first six words of a text, to find texts with the same beginning.

    If the text has fewer words, the result is "": the text is too short to be compared by its beginning.

    Args:
        key: The text's words in lower case, without punctuation (the result of the function `key`).
    """
    words = key.split(" ", _PREFIX)
    return " ".join(words[:_PREFIX]) if len(words) >= _PREFIX else ""
