"""Cleaning of the fetched training texts: repeated texts and evaluation texts are left out."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator

from train.data.source_file import Row

_WORD = re.compile("[a-z0-9]+")
_FEWEST = 2  # words; shorter texts are left out
_EQUAL = 3  # words; shorter evaluation texts do not exclude equal texts
_PREFIX = 6  # words; shorter texts do not exclude texts that begin with them
_THIRD = 3  # one of three pairs with generated summaries is kept


def key(text: str) -> str:
    """Return a text's words in lower case, without punctuation; texts with equal keys count as equal."""
    return " ".join(_WORD.findall(text.lower()))


class EvaluationTexts:
    """Evaluation texts, which must be left out of the training texts.

    `text in evaluation_texts` is true in two cases. First, the text has the same words as an evaluation text
    of at least three words. Second, the text is the beginning of an evaluation text, or an evaluation
    text is the beginning of the text; the beginning must have at least six words. Case and punctuation are
    ignored.

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

    Args:
        key: The result of the function `key` for the text: its words in lower case, without punctuation.
    """
    words = key.split(" ", _PREFIX)
    return " ".join(words[:_PREFIX]) if len(words) >= _PREFIX else ""


def clean_corpus(rows: Iterable[Row], evaluation: EvaluationTexts) -> Iterator[Row]:
    """Yield rows, without repeated texts, evaluation texts and texts of fewer than two words.

    White space in the texts is collapsed.

    Args:
        rows: Rows with a `text`.
        evaluation: The evaluation texts to leave out.
    """
    seen = set()
    for row in rows:
        text = " ".join(row["text"].split())
        own = key(text)
        if own.count(" ") + 1 >= _FEWEST and own not in seen and text not in evaluation:
            seen.add(own)
            yield {**row, "text": text}


def third_of_pairs(rows: Iterable[Row], evaluation: EvaluationTexts) -> Iterator[Row]:
    """Yield about a third of the distinct pairs, without pairs that contain an evaluation text.

    The pairs are chosen by their hashes, and are yielded in the order of their hashes.

    Args:
        rows: Rows with a `reference` and a `candidate`.
        evaluation: The evaluation texts to leave out.
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
