"""Labelled text pairs for training the meaning head.

The meaning head is the part of a model that predicts whether two texts have the same meaning. The label of a
pair says whether its two texts have the same meaning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from simllm.errors import InputError
from simllm.io.read_json_lines import text_under
from simllm.io.read_lines import lines
from simllm.perturb.summaries.lexicon import Lexicon
from simllm.perturb.summaries.meaning_changing_edits import change
from simllm.perturb.summaries.random_rewording import reword
from simllm.perturb.summaries.word_replacement import replace
from simllm.text_cleaning import clean
from train.contrastive.config import MeaningSourceConfig
from train.contrastive.meaning_items import MeaningItem, read_items
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.select_rows import select_rows
from train.corpus.sources import match_files

SAME, DIFFERENT = 1.0, 0.0
_NEAR = 30  # half of the unrelated texts are chosen from the next 30 items in the file


@dataclass(frozen=True)
class MeaningPair:
    """Two texts with a label: 1 if they have the same meaning, 0 if not."""

    first: str
    second: str
    label: float


class MeaningSource(Protocol):
    """Interface of a source of text pairs, each with a label: whether its two texts have the same meaning.

    Each call of `draw` gives one pair at random.
    """

    def __len__(self) -> int: ...

    def draw(self, random: np.random.Generator) -> MeaningPair:
        """Return a random text pair with a label: 1 if the texts have the same meaning, 0 if not."""


def open_source(config: MeaningSourceConfig, excluded: ExcludedTexts, lexicon: Lexicon) -> MeaningSource:
    """Open a source of labelled text pairs for training the meaning head.

    The meaning head is the part of a model that predicts whether two texts have the same meaning. Some word
    pairs are held out: reserved for tests, and not trained on. For example, if `open` and `close` are held
    out:

    - Two texts are left out if one has `open` and the other has `close` instead.
    - From a file of labelled word pairs, such as synonyms, pairs with `open` or `close` are left out.

    Args:
        config: The settings of the source: its files, their fields, and which pairs to use.
        excluded: Texts that must not be trained on.
        lexicon: The word lists for editing texts by rule. They also contain the held-out word pairs.

    Returns:
        The source. Its class depends on the content of the files: meaning items (a text, rewordings, and
        texts with other meanings), single texts, text pairs or word pairs.

    Raises:
        InputError: No usable pair, text or item is left.
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
            sentences = (text for file in files for _, text in lines(file))
            source = WordPairs(pairs, _clean_and_select(sentences, config.max_words, excluded))
    if not len(source):
        raise InputError(f"meaning {config.source!r}: no pair is left")
    return source


class LabelledPairs:
    """Source of text pairs that are already labelled as having the same meaning or different meanings.

    Pairs are chosen at random. If the source has pairs of both labels, both labels are equally likely.
    """

    def __init__(self, pairs: Sequence[MeaningPair]) -> None:
        groups = [[pair for pair in pairs if pair.label == label] for label in (SAME, DIFFERENT)]
        self.groups = [group for group in groups if group]

    def __len__(self) -> int:
        return sum(map(len, self.groups))

    def draw(self, random: np.random.Generator) -> MeaningPair:
        """Choose a label at random (same or different meaning), and then a pair with this label."""
        group = self.groups[int(random.integers(len(self.groups)))]
        return group[int(random.integers(len(group)))]


class ItemPairs:
    """Labelled text pairs from meaning items: a main text, its rewordings, and texts with other meanings.

    Most pairs are two texts of one item, with the same meaning or different meanings. The other pairs are
    texts of two different items, with different meanings.

    In an item, each text with another meaning resembles the main text or a rewording. So the texts of one
    item that differ in meaning often share many words. From such pairs alone, a model could learn a wrong
    rule: two texts that share few words have the same meaning. Pairs from two items prevent this. Their texts
    often share few words, and have different meanings.
    """

    def __init__(self, items: Sequence[MeaningItem]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def draw(self, random: np.random.Generator) -> MeaningPair:
        """Choose a random text pair with a label: 1 if the texts have the same meaning, 0 if not.

        The texts come from meaning items. An item has a main text, rewordings of it, and texts with other
        meanings. The probabilities are:

        - 45%: two texts of one item, with the same meaning;
        - 35%: two texts of one item, with different meanings (55% if there is only one item);
        - 20%: texts of two different items, with different meanings (0% if there is only one item).
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
    """Labelled text pairs made by rule: a text with its rewording, or with a text of another meaning.

    The label of a pair says whether its two texts have the same meaning.
    """

    def __init__(self, texts: Sequence[str], lexicon: Lexicon) -> None:
        self.texts, self.lexicon = texts, lexicon

    def __len__(self) -> int:
        return len(self.texts)

    def draw(self, random: np.random.Generator) -> MeaningPair:
        """Choose a text at random, and make a pair of this text and a second text.

        The approximate probabilities of the second text are:

        - 40%: a rewording of the first text (label 1: same meaning);
        - 45%: the first text with a changed meaning (label 0: different meanings);
        - 15%: an unrelated text (label 0).

        If the rules cannot edit the first text, another first text is chosen.

        Raises:
            InputError: No pair could be made from any of 100 chosen texts.
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
    """Labelled sentence pairs, made from labelled word pairs such as synonyms.

    The first sentence comes from a file, and has the first word of the word pair. In the second sentence,
    this word is replaced by the second word of the word pair. For example, the word pair `remove` and
    `delete` gives the sentences `remove the file` and `delete the file`, with the label of the word pair.
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
        """Choose a labelled word pair at random, and make a sentence pair with the same label.

        The label is 1 if the two words have the same meaning, and 0 if not.

        The first sentence is chosen at random from those with the first word of the word pair. The second
        sentence is a copy with the second word instead of the first word.
        """
        pair = self.pairs.draw(random)
        options = self.sentences[pair.first]
        sentence = options[random.integers(len(options))]
        words = sentence.split()
        place = words.index(pair.first)
        return MeaningPair(sentence, " ".join(replace(words, place, place + 1, pair.second)), pair.label)


def _read_texts(config: MeaningSourceConfig) -> Iterator[str]:
    """Yield the texts of a source that has single texts, not pairs of texts.

    A text is a line of a plain-text file, or one field of a JSON line.
    """
    if config.fields:
        for where, row in select_rows(config.source, config.only, config.leave_out):
            yield text_under(row, config.fields[0], where)
    else:
        yield from (text for file in match_files(config.source) for _, text in lines(file))


def _clean_and_select(texts: Iterable[str], max_words: int, excluded: ExcludedTexts) -> list[str]:
    """Clean texts, and drop those that are empty, repeated, in `excluded`, or over `max_words` words long."""
    cleaned = dict.fromkeys(map(clean, texts))
    return [text for text in cleaned if text and text.count(" ") < max_words and text not in excluded]


def _read_labelled(config: MeaningSourceConfig) -> list[MeaningPair]:
    """Read the labelled text pairs (or word pairs) of a source.

    The setting `same` lists the labels in the file that stand for the same meaning, such as "entailment". The
    setting `different` lists those that stand for different meanings. If the settings name no field for the
    label, every pair counts as a pair with the same meaning.

    A pair is left out if its label is in neither list, if its texts are equal, or if one of its texts is
    empty or too long.
    """
    labels = dict.fromkeys(config.same, SAME) | dict.fromkeys(config.different, DIFFERENT)
    pairs = []
    for where, row in select_rows(config.source, config.only, config.leave_out):
        first, second = (clean(text_under(row, name, where)) for name in config.fields[:2])
        label = SAME if len(config.fields) == 2 else labels.get(str(row.get(config.fields[2])))
        longest = max(first.count(" "), second.count(" "))
        if label is None or not first or not second or longest >= config.max_words:
            continue
        if first != second:  # equal texts have the same meaning, whatever the label
            pairs.append(MeaningPair(first, second, label))
    return pairs
