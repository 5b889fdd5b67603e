"""Positive pairs for contrastive training: pairs of texts with the same meaning.

A positive pair may also have hard negatives: texts with similar words and another meaning.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simllm.errors import InputError
from simllm.io.read_json_lines import text_under
from simllm.io.read_lines import lines
from simllm.perturb.summaries.lexicon import Lexicon
from simllm.perturb.summaries.meaning_changing_edits import change
from simllm.perturb.summaries.random_rewording import reword
from simllm.text_cleaning import clean
from train.contrastive.config import PositivesConfig
from train.contrastive.meaning_items import MeaningItem, read_items
from train.contrastive.word_dropout import drop_words
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.select_rows import select_rows
from train.corpus.sources import match_files
from train.corpus.text_hash import identity
from train.runtime.seeded_random_numbers import combined_seed


@dataclass(frozen=True)
class PositivePair:
    """A positive pair: two texts with the same meaning. It may also have hard negatives.

    Attributes:
        first: One text.
        second: The other text.
        group: A hash that names a group of pairs. All texts in the pairs of one group have the same meaning.
        negatives: Hard negatives for the first text: texts with similar words and another meaning.
    """

    first: str
    second: str
    group: bytes
    negatives: tuple[str, ...] = ()


class PositiveSource:
    """Source of positive pairs (two texts with the same meaning), from which pairs are chosen at random."""

    def __init__(self, config: PositivesConfig, excluded: ExcludedTexts, lexicon: Lexicon) -> None:
        """Read the files from which positive pairs (two texts with the same meaning) are chosen.

        Args:
            config: The settings: which files to read, and how to make pairs from their texts.
            excluded: Evaluation texts, which are left out.
            lexicon: Word lists, used to reword a text or to change its meaning.

        Raises:
            InputError: A file cannot be read, or no usable pair is left.
        """
        self.config, self.excluded, self.lexicon = config, excluded, lexicon
        self.texts: list[str] = []
        self.items: list[MeaningItem] = []
        if config.items:
            self.items = read_items(config.source, "train", excluded, lexicon.held_out_words)
        elif not config.fields:
            files = match_files(config.source)
            cleaned = (clean(line) for file in files for _, line in lines(file))
            self.texts = [text for text in cleaned if self._fits(text)]
        self.pairs = [
            pair
            for pair in (_read_pairs(config) if config.fields and not config.items else ())
            if self._fits(pair.first) and self._fits(pair.second)
            if not any(text in excluded for text in (pair.first, pair.second, *pair.negatives))
        ]
        if not len(self):
            raise InputError(f"positives {config.source!r}: no pair is left")

    def __len__(self) -> int:
        return len(self.texts or self.items or self.pairs)

    def draw(self, random: np.random.Generator) -> PositivePair:
        """Choose a positive pair (two texts with the same meaning) at random, and edit it at random.

        The settings of the source decide which edits are made:

        - `rewording`: Whether rules reword the second text.
        - `hard_negatives`: The number of hard negatives (texts with similar words and another meaning) that
          the pair should have. If it has fewer, rules make more by changing the meaning of the first text.
          The rules cannot change every text, so there can still be too few.
        - `word_dropout`: The probability with which each word is removed. With `rewording`, only the second
          text loses words.
        """
        config, pair = self.config, self._draw_unchanged(random)
        first, second, negatives = pair.first, pair.second, dict.fromkeys(pair.negatives)
        if config.rewording:
            second = reword(second, self.lexicon, random)
        for _ in range(config.hard_negatives - len(negatives)):
            if changed := change(first, self.lexicon, random):
                negatives[changed[1]] = None
        share = config.word_dropout
        if not config.rewording:
            first = drop_words(first, share, random)
        return PositivePair(first, drop_words(second, share, random), pair.group, tuple(negatives))

    def _fits(self, text: str) -> bool:
        """Return whether a text has at least one word and at most `max_words`, a setting of the source."""
        return bool(text) and text.count(" ") < self.config.max_words

    def _draw_unchanged(self, random: np.random.Generator) -> PositivePair:
        """Choose a positive pair (two texts with the same meaning) at random, without edits.

        A source has texts of one of three kinds:

        - Single texts: a text is chosen, and paired with itself.
        - Pairs: a pair is chosen. Its two texts are swapped with probability 1/2, unless the pair has hard
          negatives, because the hard negatives belong to its first text.
        - Meaning items: an item has texts with the same meaning, and texts with other meanings. Two texts
          with the same meaning become the pair. At most `hard_negatives` (a setting) of the texts with other
          meanings become its hard negatives.
        """
        if self.items:
            item = self.items[random.integers(len(self.items))]
            negatives = random.permutation(item.different)[: self.config.hard_negatives]
            return PositivePair(*item.draw_same(random), identity(item.same[0]), tuple(map(str, negatives)))
        if self.pairs:
            pair = self.pairs[random.integers(len(self.pairs))]
            swap = not pair.negatives and random.random() < 0.5
            return PositivePair(pair.second, pair.first, pair.group) if swap else pair
        for number in random.integers(len(self.texts), size=100):  # to check all texts takes a minute
            text = self.texts[number]
            if text not in self.excluded:
                return PositivePair(text, text, identity(text))
        raise InputError(f"positives {self.config.source!r}: a hundred texts in a row are excluded")


def draw_pairs(sources: list[PositiveSource], count: int, seed: int, update: int) -> list[PositivePair]:
    """Choose positive pairs (two texts with the same meaning) at random for one update (optimizer step).

    Equal arguments give equal pairs.

    Args:
        sources: The sources. The source of each pair is chosen at random, with probabilities proportional to
            the configured shares of the sources.
        count: Number of pairs.
        seed: The seed of the run.
        update: Number of the update, from 0.

    Returns:
        `count` pairs, edited as configured for their source.
    """
    random = np.random.default_rng(combined_seed(seed, update))
    shares = np.array([source.config.share for source in sources])
    chosen = random.choice(len(sources), count, p=shares / shares.sum())
    return [sources[number].draw(random) for number in chosen]


def _read_pairs(config: PositivesConfig) -> list[PositivePair]:
    """Read the positive pairs (two texts with the same meaning) of a source from JSON lines.

    A pair is left out if the word overlap of its two texts (the Jaccard similarity of their sets of words) is
    below the setting `min_overlap` or above the setting `max_overlap`.
    """
    pairs = []
    for where, row in select_rows(config.source, config.only, config.leave_out):
        first, second = (clean(text_under(row, field, where)) for field in config.fields[:2])
        if config.min_overlap <= _word_overlap(first, second) <= config.max_overlap:
            group = identity(str(row.get("group", first)))
            negatives = [clean(text_under(row, field, where)) for field in config.fields[2:] if field in row]
            pairs.append(PositivePair(first, second, group, tuple(negatives)))
    return pairs


def _word_overlap(first: str, second: str) -> float:
    """Return the word overlap of two texts: the Jaccard similarity of their sets of words."""
    a, b = set(first.split()), set(second.split())
    return len(a & b) / max(1, len(a | b))
