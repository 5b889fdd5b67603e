"""Decontamination of fetched training texts: recognition of texts that also occur in evaluation data.

The corpus has a wider rule (see `train.corpus.decontaminate`): there, a text anywhere inside an evaluation
text counts, too. It is not used here, because it would leave other texts out of the data sets than those that
the checksums of the catalog belong to, and that the released model was trained on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator

from train.corpus.deduplicate import words
from train.data.readers import Row

_EQUAL = 3  # words; shorter evaluation texts do not exclude equal texts
_PREFIX = 6  # words; shorter texts do not exclude texts that begin with them


def key(text: str) -> str:
    """Return the key of a text."""
    return " ".join(words(text.lower()))


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
    first = key.split(" ", _PREFIX)[:_PREFIX]
    return " ".join(first) if len(first) == _PREFIX else ""


_FEWEST = 2  # words; shorter texts are left out
_THIRD = 3  # one of three pairs with generated summaries is kept


def clean_corpus(rows: Iterable[Row], evaluation: EvaluationTexts) -> Iterator[Row]:
    """Yield the rows with usable texts: new, not for evaluation, two or more words. Collapse white space."""
    seen = set()
    for row in rows:
        text = " ".join(row["text"].split())
        own = key(text)
        if own.count(" ") + 1 >= _FEWEST and own not in seen and text not in evaluation:
            seen.add(own)
            yield {**row, "text": text}


def third_of_pairs(rows: Iterable[Row], evaluation: EvaluationTexts) -> Iterator[Row]:
    """Yield about a third of the distinct pairs `reference` and `candidate`, in the order of their hashes.

    Pairs with an evaluation text are left out.
    """
    kept = {}
    for row in rows:
        # A hash of the pair decides, so that the choice is always the same.
        digest = hashlib.sha256(json.dumps([row["reference"], row["candidate"]]).encode()).digest()
        if int.from_bytes(digest) % _THIRD or digest in kept:
            continue
        if row["reference"] not in evaluation and row["candidate"] not in evaluation:
            kept[digest] = row
    return (row for _, row in sorted(kept.items()))


CLEANINGS = {"corpus": clean_corpus, "third_of_pairs": third_of_pairs}
