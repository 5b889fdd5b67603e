"""Cleaning of the fetched corpora: no repetitions, and no texts of evaluation sets."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator

from train.data.source_file import Row

_WORD = re.compile("[a-z0-9]+")
_FEWEST = 2  # words of a text that is kept
_EQUAL = 3  # words of an evaluation text that equal texts are dropped for
_PREFIX = 6  # words of a text that another one may not begin with
_THIRD = 3  # one of so many generated summaries is kept


def key(text: str) -> str:
    """The words of a text in lower case; texts with the same key count as the same."""
    return " ".join(_WORD.findall(text.lower()))


class EvaluationTexts:
    """Texts that models are judged on; `text in texts` tells whether one must not be trained on.

    A text is in if its key equals an evaluation text's of at least three words, or if one of the
    two keys begins with the other, word for word, and the shorter has at least six words.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        keys = {key(text) for text in texts}
        self._keys = {found for found in keys if found.count(" ") + 1 >= _EQUAL}
        self._by_start: dict[str, list[str]] = {}
        for found in keys:
            if start := _start(found):
                self._by_start.setdefault(start, []).append(found)

    def __contains__(self, text: str) -> bool:
        mine = key(text)
        if mine in self._keys:
            return True
        others = self._by_start.get(_start(mine), ())
        return any(
            (mine + " ").startswith(other + " ") or (other + " ").startswith(mine + " ") for other in others
        )


def _start(key: str) -> str:
    """The first six words of a key; nothing if the key has fewer."""
    words = key.split(" ", _PREFIX)
    return " ".join(words[:_PREFIX]) if len(words) >= _PREFIX else ""


def corpus(rows: Iterable[Row], evaluation: EvaluationTexts) -> Iterator[Row]:
    """Yield the rows whose texts have two words or more, are new and are no evaluation texts.

    White space in the texts is collapsed.
    """
    seen = set()
    for row in rows:
        text = " ".join(row["text"].split())
        found = key(text)
        if found.count(" ") + 1 >= _FEWEST and found not in seen and text not in evaluation:
            seen.add(found)
            yield {**row, "text": text}


def third_of_pairs(rows: Iterable[Row], evaluation: EvaluationTexts) -> Iterator[Row]:
    """Yield a third of the distinct pairs that hold no evaluation text, shuffled; both by a hash."""
    kept = {}
    for row in rows:
        digest = hashlib.sha256(json.dumps([row["reference"], row["candidate"]]).encode()).digest()
        if int.from_bytes(digest) % _THIRD or digest in kept:
            continue
        if row["reference"] not in evaluation and row["candidate"] not in evaluation:
            kept[digest] = row
    return (row for _, row in sorted(kept.items()))


CLEANINGS = {"corpus": corpus, "third_of_pairs": third_of_pairs}
