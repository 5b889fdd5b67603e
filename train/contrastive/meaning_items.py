"""Meaning items: a text, texts with the same meaning, and texts with other meanings.

The files in `train/contrastive/items` were written for this project. Each line is one item, for example:

    {"text": "opens it", "same": ["it is opened"], "different": [["opposite-verb", "closes it"]]}

"same" lists texts with the same meaning as "text". "different" lists texts with another meaning. Each entry
of "different" has the kind of difference, here "opposite-verb", and then the text.

Items are divided into three splits: "train" (90%, to train models), "dev" (5%, to choose the best model of a
run) and "test" (5%, to test models). A hash of the item's "text" decides to which split the item belongs.

The items in `train/contrastive/unseen_items` have no splits, because no model is trained on them. They come
from other writers than the items that models are trained on.
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

SPLITS = {"train": range(90), "dev": range(90, 95), "test": range(95, 100)}  # percentiles of the hash


@dataclass(frozen=True)
class MeaningItem:
    """A meaning item: a main text, texts with the same meaning, and texts with other meanings.

    All texts are cleaned, as texts are cleaned before scoring: for example, comment marks such as `//` are
    removed (see `simllm.text_cleaning`).

    Attributes:
        same: Two or more texts with the same meaning. The first is the main text of the item.
        different: Texts that resemble a text of `same`, but have another meaning.
        kinds: For each text of `different`, the kind of difference in meaning, such as "negation".
    """

    same: tuple[str, ...]
    different: tuple[str, ...]
    kinds: tuple[str, ...]

    def draw_same(self, random: np.random.Generator) -> tuple[str, str]:
        """Choose two different texts at random from `same`, the texts of the item with the same meaning."""
        first, second = random.choice(len(self.same), 2, replace=False)
        return self.same[first], self.same[second]

    def draw_different(self, random: np.random.Generator) -> tuple[str, str]:
        """Choose two texts with different meanings at random, and return them in random order.

        One is the main text or a rewording (from `same`). The other has another meaning (from `different`).
        """
        pair = (
            self.same[random.integers(len(self.same))],
            self.different[random.integers(len(self.different))],
        )
        return pair if random.random() < 0.5 else pair[::-1]


def read_items(
    pattern: str, split: str | None, excluded: ExcludedTexts, held_out: HeldOutWords
) -> list[MeaningItem]:
    """Read meaning items: each has a main text, rewordings of it, and texts with other meanings.

    Some word pairs, such as `open` and `close`, are held out: models are tested on them, but not trained on
    them. Therefore, some texts are removed from the items:

    - A rewording is removed if it has `close` and the main text has `open` instead, or the other way round.
    - A text with another meaning is removed if it differs in this way from the main text, or from a
      rewording that is kept.

    Args:
        pattern: Path or glob pattern of files with items.
        split: "train", "dev" or "test"; None: the items of all splits.
        excluded: Texts that must not be trained on. An item that has such a text is left out.
        held_out: The held-out word pairs.

    Returns:
        The items that still have a rewording and a text with another meaning.

    Raises:
        InputError: A file cannot be read, a line is not a valid item, or all items are left out.
    """
    items: list[MeaningItem] = []
    for where, row in (each for file in match_files(pattern) for each in read_json_lines.objects(file)):
        item = _parse_item(row, where)
        percentile = int.from_bytes(hashlib.sha256(identity(item.same[0])).digest()[:4]) * 100 >> 32
        chosen = split is None or percentile in SPLITS[split]
        if chosen and not any(text in excluded for text in item.same + item.different):
            items += _without_held_out_words(item, held_out)
    if not items:
        raise InputError(f"{pattern}: no item is left")
    return items


def make_triples(items: list[MeaningItem]) -> Triples:
    """Make triples of texts from meaning items: a reference, a rewording, and a text with another meaning.

    A meaning item has a main text, rewordings, and n texts with other meanings. The main text is the
    reference of n + 1 triples:

    - Each of the n texts with other meanings is in one triple.
    - In one further triple, the text with another meaning is the main text of the next item. The kind of
      this triple (`Triples.kinds`) is "unrelated". The first item follows the last. If there is only one
      item, this triple is missing.

    The triples of an item use its rewordings in turn: the first triple has the first rewording, and so on.
    After the last rewording, the first is used again.

    Args:
        items: The meaning items.

    Returns:
        The triples, in the order of the items. The form of each triple (`Triples.forms`, the group by which
        results are averaged) is "written".
    """
    rows = []
    for item, other in zip(items, [*items[1:], items[0]], strict=True):
        changes = [*zip(item.different, item.kinds, strict=True)]
        if other is not item:
            changes.append((other.same[0], "unrelated"))
        for number, (changed, kind) in enumerate(changes):
            rewording = item.same[1 + number % (len(item.same) - 1)]
            rows.append((item.same[0], rewording, changed, kind, "written"))
    return Triples(*(list(column) for column in zip(*rows, strict=True)))


def _parse_item(row: dict[str, Any], where: str) -> MeaningItem:
    """Check the JSON object of one meaning item, and clean its texts.

    Args:
        row: The JSON object, such as `{"text": "opens it", "same": ["it is opened"], "different":
            [["opposite-verb", "closes it"]]}`: a main text, texts with the same meaning, and texts with other
            meanings, each with the kind of difference ("opposite-verb").
        where: The location of the item for error messages.

    Returns:
        The item with cleaned texts (see `simllm.text_cleaning`).

    Raises:
        InputError: A key is missing, a value has the wrong type, or a text is empty or repeated after
            cleaning.
    """
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
    """Return whether a JSON value is a list of strings."""
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _without_held_out_words(item: MeaningItem, held_out: HeldOutWords) -> Iterator[MeaningItem]:
    """Remove texts from a meaning item, so that models cannot learn held-out word pairs from it.

    A meaning item has a main text, rewordings of it, and texts with other meanings. Models are tested on
    held-out word pairs, such as `open` and `close`, but not trained on them.

    - A rewording is removed if it has `close` and the main text has `open` instead, or the other way round.
    - A text with another meaning is removed if it differs in this way from the main text, or from a
      rewording that is kept.

    Yields:
        The item without the removed texts. Nothing is yielded if the item has no rewording left, or no text
        with another meaning.
    """
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
