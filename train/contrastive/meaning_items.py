"""Meaning items: a text, texts with the same meaning, and texts with other meanings.

The files in `train/contrastive/items` were written for this project. Each line is one item, for example:

    {"text": "opens it", "same": ["it is opened"], "different": [["opposite-verb", "closes it"]]}

Each entry of "different" has the kind of difference, and then the text.

Items are divided into the splits "train" (90%), "dev" (5%, to choose the best model of a run) and "test" (5%)
by a hash of "text". The items in `train/contrastive/unseen_items` have no splits, because no model is trained
on them. They come from other writers than the items that models are trained on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from simllm.errors import InputError
from simllm.evaluation.contrast_triples import Triples
from simllm.io import read_json_lines
from simllm.perturb.summaries.held_out_words import HeldOutWords
from simllm.text_cleaning import clean
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.sources import match_files
from train.corpus.text_hash import identity

# Percentiles of the hash.
SPLITS = {"train": range(90), "dev": range(90, 95), "test": range(95, 100)}


@dataclass(frozen=True)
class MeaningItem:
    """A meaning item with cleaned texts.

    Attributes:
        same: Two or more texts with the same meaning, the main text first.
        different: Texts that resemble a text of `same`, but have another meaning.
        kinds: For each text of `different`, the kind of difference, such as "negation".
    """

    same: tuple[str, ...]
    different: tuple[str, ...]
    kinds: tuple[str, ...]

    def draw_same(self, random: np.random.Generator) -> tuple[str, str]:
        """Draw two different texts with the same meaning."""
        first, second = random.choice(len(self.same), 2, replace=False)
        return self.same[first], self.same[second]

    def draw_different(self, random: np.random.Generator) -> tuple[str, str]:
        """Draw a text of `same` and one of `different`, in random order."""
        # In a fixed place, the changed text could show the label: hence the random order.
        pair = (
            self.same[random.integers(len(self.same))],
            self.different[random.integers(len(self.different))],
        )
        return pair if random.random() < 0.5 else pair[::-1]


def read_items(
    pattern: str, split: str | None, excluded: ExcludedTexts, held_out: HeldOutWords
) -> list[MeaningItem]:
    """Read the items of one split (None: all) that have no excluded text.

    Texts that would teach held-out words are removed. An item needs a rewording and a different text that are
    kept.
    """
    items: list[MeaningItem] = []
    for where, row in (each for file in match_files(pattern) for each in read_json_lines.objects(file)):
        item = _parse_item(row, where)
        # A hash, not a position: an item stays in its split when items are added or reordered.
        percentile = int.from_bytes(hashlib.sha256(identity(item.same[0])).digest()[:4]) * 100 >> 32
        chosen = split is None or percentile in SPLITS[split]
        if chosen and not any(text in excluded for text in item.same + item.different):
            items += _without_held_out_words(item, held_out)
    if not items:
        raise InputError(f"{pattern}: no item is left")
    return items


def make_triples(items: list[MeaningItem]) -> Triples:
    """Make the triples of each item: main text, rewording, and text with another meaning.

    An item with n texts with other meanings gives n + 1 triples. In the last one, the other text is the main
    text of the next item, and the kind is "unrelated"; a lone item lacks this triple. The rewordings are used
    in turn. The form of all triples is "written".
    """
    rows = []
    for item, other in zip(items, [*items[1:], items[0]], strict=True):
        changes = [*zip(item.different, item.kinds, strict=True)]
        if other is not item:
            # An unrelated text is the easy case of another meaning.
            changes.append((other.same[0], "unrelated"))
        for number, (changed, kind) in enumerate(changes):
            rewording = item.same[1 + number % (len(item.same) - 1)]
            rows.append((item.same[0], rewording, changed, kind, "written"))
    return Triples(*(list(column) for column in zip(*rows, strict=True)))


def _parse_item(row: dict[str, Any], where: str) -> MeaningItem:
    """Check the JSON object of one item, and clean its texts."""
    same, different = row.get("same"), row.get("different")
    if not _are_texts(same) or not isinstance(different, list) or not all(map(_are_texts, different)):
        raise InputError(f"{where}: expected 'same': [TEXT, ...] and 'different': [[KIND, TEXT], ...]")
    if not same or not different or any(len(pair) != 2 for pair in different):
        raise InputError(f"{where}: expected one or more texts under 'same', and pairs under 'different'")
    texts = tuple(clean(text) for text in [read_json_lines.text_under(row, "text", where), *same])
    changed = tuple(clean(text) for _, text in different)
    everything = texts + changed
    if not all(everything) or len(set(everything)) < len(everything):
        raise InputError(f"{where}: a text is empty, or equals another one of the item")
    return MeaningItem(texts, changed, tuple(kind for kind, _ in different))


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _without_held_out_words(item: MeaningItem, held_out: HeldOutWords) -> Iterator[MeaningItem]:
    """Yield the item without the texts that differ from a kept text by held-out words, if enough are left."""
    text, *others = item.same
    same = [text, *(other for other in others if not held_out.holds_out(text, other))]
    changes = [
        (changed, kind)
        for changed, kind in zip(item.different, item.kinds, strict=True)
        if not any(held_out.holds_out(kept, changed) for kept in same)
    ]
    if len(same) > 1 and changes:
        different, kinds = zip(*changes, strict=True)
        yield MeaningItem(tuple(same), different, kinds)
