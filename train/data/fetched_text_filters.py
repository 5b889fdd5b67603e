"""Cleanings of fetched training texts: repeated texts and evaluation texts are left out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator

from train.data.decontaminate_fetched_texts import EvaluationTexts, key
from train.data.parse_fetched_file import Row

# Words; shorter texts are left out.
_FEWEST = 2
# One of three pairs with generated summaries is kept.
_THIRD = 3


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
