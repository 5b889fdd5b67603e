"""Cleaning of the fetched training texts: repeated texts and evaluation texts are left out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator

from train.data.decontaminate_fetched_texts import EvaluationTexts, key
from train.data.parse_fetched_file import Row

_FEWEST = 2  # words; shorter texts are left out
_THIRD = 3  # one of three pairs with generated summaries is kept


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
