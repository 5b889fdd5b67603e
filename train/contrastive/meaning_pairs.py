"""Meaning items: a text, texts with the same meaning, and texts with other meanings.

The files in `train/contrastive/items` were written for this project. They are gzipped with a time of 0
(`gzip.compress(data, mtime=0)`), so that equal items give equal files. Each line is one item, for example:

    {"text": "opens it", "same": ["it is opened"], "different": [["opposite-verb", "closes it"]]}

Each entry of "different" has the kind of difference, and then the text.

Items are divided into the splits "train" (90%), "dev" (5%, to choose the best model of a run) and "test" (5%)
by a hash of "text". The items in `train/contrastive/unseen_items` have no splits, because no model is trained
on them. They come from other writers than the items that models are trained on.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from simllm.errors import InputError
from simllm.evaluation.contrast import Triples
from simllm.io import reading
from simllm.io.reading import read_lines, text_under
from simllm.perturb.summaries.lexicon import HeldOutWords, Lexicon, replace
from simllm.perturb.summaries.meaning_changes import change
from simllm.perturb.summaries.rewording import reword
from simllm.text_cleaning import clean
from train.contrastive.config import MeaningSourceConfig
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.deduplicate import identity
from train.corpus.sources import match_files, select_rows

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
    for where, row in (each for file in match_files(pattern) for each in reading.objects(file)):
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
    texts = tuple(clean(text) for text in [reading.text_under(row, "text", where), *same])
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


SAME, DIFFERENT = 1.0, 0.0
# Half of the unrelated texts are chosen from the next 30 items in the file.
_NEAR = 30


@dataclass(frozen=True)
class MeaningPair:
    """Two texts with a label: `SAME` or `DIFFERENT`, or a grade from 0 to 1."""

    first: str
    second: str
    label: float


class MeaningSource(Protocol):
    """A source of labelled text pairs, which are drawn at random."""

    def __len__(self) -> int: ...

    def draw(self, random: np.random.Generator) -> MeaningPair:
        """Draw one labelled pair."""


def open_source(config: MeaningSourceConfig, excluded: ExcludedTexts, lexicon: Lexicon) -> MeaningSource:
    """Open a source of labelled pairs; its class depends on the content of its files.

    A pair is left out if one text has a held-out word where the other has its counterpart. A labelled word
    pair is left out if it has a held-out word at all.
    """
    source: MeaningSource
    if config.items:
        source = ItemPairs(read_items(config.source, "train", excluded, lexicon.held_out_words))
    elif len(config.fields) < 2:
        source = RuleMadePairs(_clean_and_select(_read_texts(config), config.max_words, excluded), lexicon)
    else:
        pairs = [pair for pair in _read_labelled(config) if pair.first not in excluded]
        pairs = [pair for pair in pairs if pair.second not in excluded]
        held_out = lexicon.held_out_words
        pairs = [pair for pair in pairs if not held_out.holds_out(pair.first, pair.second)]
        source = LabelledPairs(pairs)
        if config.sentences:
            pairs = [pair for pair in pairs if not held_out.words & {pair.first, pair.second}]
            files = (file for pattern in config.sentences for file in match_files(pattern))
            sentences = (text for file in files for _, text in read_lines(file))
            source = WordPairs(pairs, _clean_and_select(sentences, config.max_words, excluded))
    if not len(source):
        raise InputError(f"meaning {config.source!r}: no pair is left")
    return source


class LabelledPairs:
    """Pairs that are labelled in a file; both labels are equally likely if both occur."""

    def __init__(self, pairs: Sequence[MeaningPair]) -> None:
        groups = [[pair for pair in pairs if pair.label == label] for label in (SAME, DIFFERENT)]
        self.groups = [group for group in groups if group]

    def __len__(self) -> int:
        return sum(map(len, self.groups))

    def draw(self, random: np.random.Generator) -> MeaningPair:
        """Draw a label, and then a pair with this label."""
        group = self.groups[int(random.integers(len(self.groups)))]
        return group[int(random.integers(len(group)))]


class ItemPairs:
    """Pairs of texts of one meaning item, and of different items.

    The texts of one item that differ in meaning often share many words. From such pairs alone, a model could
    learn that two texts that share few words have the same meaning. Pairs from two items prevent this: their
    texts often share few words, and have different meanings.
    """

    def __init__(self, items: Sequence[MeaningItem]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def draw(self, random: np.random.Generator) -> MeaningPair:
        """Draw texts with the same meaning (45%), or different meanings from one item (35%) or two items
        (20%).

        If there is only one item, it has the share of two items, too.
        """
        number, chance = int(random.integers(len(self.items))), random.random()
        item = self.items[number]
        if chance < 0.45:
            return MeaningPair(*item.draw_same(random), SAME)
        if chance < 0.8 or len(self.items) == 1:
            return MeaningPair(*item.draw_different(random), DIFFERENT)
        # Half of the other items are near in the file, and therefore about a similar subject.
        farthest = min(_NEAR if chance < 0.9 else len(self.items), len(self.items) - 1)
        other = self.items[(number + int(random.integers(1, farthest + 1))) % len(self.items)]
        first, second = (each.same[int(random.integers(len(each.same)))] for each in (item, other))
        return MeaningPair(first, second, DIFFERENT)


class RuleMadePairs:
    """Pairs made by rule: a text with its rewording, with a changed meaning, or with an unrelated text."""

    def __init__(self, texts: Sequence[str], lexicon: Lexicon) -> None:
        self.texts, self.lexicon = texts, lexicon

    def __len__(self) -> int:
        return len(self.texts)

    def draw(self, random: np.random.Generator) -> MeaningPair:
        """Draw a text with a rewording (about 40%), a changed meaning (45%) or an unrelated text (15%).

        Raises InputError if 100 texts in a row can be neither reworded nor changed.
        """
        for _ in range(100):
            text = self.texts[int(random.integers(len(self.texts)))]
            chance = random.random()
            second, label = text, SAME
            if chance < 0.15:
                second, label = self.texts[int(random.integers(len(self.texts)))], DIFFERENT
            elif chance < 0.55:
                second = reword(text, self.lexicon, random)
            elif changed := change(text, self.lexicon, random):
                # A change is often reworded, too, so that the number of new words does not show the label.
                second = reword(changed[1], self.lexicon, random) if random.random() < 0.4 else changed[1]
                label = DIFFERENT
            if second != text:
                return MeaningPair(text, second, label)
        raise InputError("meaning: none of 100 drawn texts can be reworded or changed")


class WordPairs:
    """Labelled sentence pairs, made from labelled word pairs.

    The word pair `remove` and `delete` gives the sentences `remove the file` and `delete the file`, with the
    label of the word pair.
    """

    def __init__(self, pairs: Sequence[MeaningPair], sentences: Sequence[str]) -> None:
        self.sentences: dict[str, list[str]] = defaultdict(list)
        words = {word for pair in pairs for word in (pair.first, pair.second)}
        for sentence in sentences:
            for word in words.intersection(sentence.split()):
                self.sentences[word].append(sentence)
        self.pairs = LabelledPairs([pair for pair in pairs if pair.first in self.sentences])

    def __len__(self) -> int:
        return len(self.pairs)

    def draw(self, random: np.random.Generator) -> MeaningPair:
        """Draw a word pair and a sentence with its first word, and put the second word into a copy of the
        sentence.
        """
        pair = self.pairs.draw(random)
        options = self.sentences[pair.first]
        sentence = options[random.integers(len(options))]
        words = sentence.split()
        place = words.index(pair.first)
        return MeaningPair(sentence, " ".join(replace(words, place, place + 1, pair.second)), pair.label)


def _read_texts(config: MeaningSourceConfig) -> Iterator[str]:
    """Yield the texts of a source that has single texts: lines, or one field of JSON lines."""
    if config.fields:
        for where, row in select_rows(config.source, config.only, config.leave_out):
            yield text_under(row, config.fields[0], where)
    else:
        yield from (text for file in match_files(config.source) for _, text in read_lines(file))


def _clean_and_select(texts: Iterable[str], max_words: int, excluded: ExcludedTexts) -> list[str]:
    """Clean texts, and drop those that are empty, repeated, in `excluded`, or over `max_words` words long."""
    cleaned = dict.fromkeys(map(clean, texts))
    return [text for text in cleaned if text and text.count(" ") < max_words and text not in excluded]


def _read_labelled(config: MeaningSourceConfig) -> list[MeaningPair]:
    """Read labelled text pairs or word pairs; without a field for the label, all have the same meaning."""
    labels = dict.fromkeys(config.same, SAME) | dict.fromkeys(config.different, DIFFERENT)
    pairs = []
    for where, row in select_rows(config.source, config.only, config.leave_out):
        first, second = (clean(text_under(row, name, where)) for name in config.fields[:2])
        # A label in neither list of the settings gives None.
        label = SAME if len(config.fields) == 2 else labels.get(str(row.get(config.fields[2])))
        longest = max(first.count(" "), second.count(" "))
        if label is None or not first or not second or longest >= config.max_words:
            continue
        # Equal texts have the same meaning, whatever the label.
        if first != second:
            pairs.append(MeaningPair(first, second, label))
    return pairs
