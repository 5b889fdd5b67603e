"""Decontamination of fetched training texts: recognition of texts that also occur in evaluation data."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORD = re.compile("[a-z0-9]+")
# Words; shorter evaluation texts do not exclude equal texts.
_EQUAL = 3
# Words; shorter texts do not exclude texts that begin with them.
_PREFIX = 6


def key(text: str) -> str:
    """Return the key of a text."""
    return " ".join(_WORD.findall(text.lower()))


class EvaluationTexts:
    """Texts of the evaluation data.

    `text in evaluation_texts` is true if the text equals an evaluation text of three or more words, or if one
    of them begins with the other, which has six or more words. Case and punctuation are ignored.
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
            # The space keeps "get user" from beginning "get users".
            (own + " ").startswith(other + " ") or (other + " ").startswith(own + " ")
            for other in others
        )


def _start(key: str) -> str:
    """Return the first six words of a key; "" if there are fewer."""
    words = key.split(" ", _PREFIX)
    return " ".join(words[:_PREFIX]) if len(words) >= _PREFIX else ""
