"""Cleaning of the fetched training texts: repeated texts and evaluation texts are left out."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator

from train.data.fetched_file import Row

_WORD = re.compile("[a-z0-9]+")
_FEWEST = 2  # words; shorter texts are left out
_EQUAL = 3  # words; shorter evaluation texts do not exclude equal texts
_PREFIX = 6  # words; shorter texts do not exclude texts that begin with them
_THIRD = 3  # one of three pairs with generated summaries is kept


def key(text: str) -> str:
    """Return a text's words in lower case, without punctuation, as a key for finding equal texts."""
    return " ".join(_WORD.findall(text.lower()))


class EvaluationTexts:
    """Texts of the evaluation data, which must not occur in the training texts.

    `text in evaluation_texts` is true in two cases:

    - The text equals an evaluation text of at least three words.
    - The text and an evaluation text have at least six words each, and one of them begins with the whole
      other text.

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
    """Return the first six words of a text; "" if the text has fewer words.

    Texts with the same beginning are found by these words.

    Args:
        key: The text's words in lower case, without punctuation (the result of the function `key`).
    """
    words = key.split(" ", _PREFIX)
    return " ".join(words[:_PREFIX]) if len(words) >= _PREFIX else ""


def clean_corpus(rows: Iterable[Row], evaluation: EvaluationTexts) -> Iterator[Row]:
    """Yield the rows whose texts are usable for training, with white space in the texts collapsed.

    A row is left out if its text repeats an earlier text, is an evaluation text, or has fewer than two words.

    Args:
        rows: Rows (JSON objects) with a text under the key `text`.
        evaluation: The texts of the evaluation data.
    """
    seen = set()
    for row in rows:
        text = " ".join(row["text"].split())
        own = key(text)
        if own.count(" ") + 1 >= _FEWEST and own not in seen and text not in evaluation:
            seen.add(own)
            yield {**row, "text": text}


def third_of_pairs(rows: Iterable[Row], evaluation: EvaluationTexts) -> Iterator[Row]:
    """Yield about a third of the distinct text pairs; pairs with an evaluation text are left out.

    A hash of each pair decides whether it is chosen, so that the choice is always the same. The chosen pairs
    are yielded in the order of their hashes.

    Args:
        rows: Rows with the texts of a pair, under `reference` and `candidate`.
        evaluation: The texts of the evaluation data.
    """
    kept = {}
    for row in rows:
        digest = hashlib.sha256(json.dumps([row["reference"], row["candidate"]]).encode()).digest()
        if int.from_bytes(digest) % _THIRD or digest in kept:
            continue
        if row["reference"] not in evaluation and row["candidate"] not in evaluation:
            kept[digest] = row
    return (row for _, row in sorted(kept.items()))


CLEANINGS = {"corpus": clean_corpus, "third_of_pairs": third_of_pairs}
