"""Positive pairs for contrastive training."""

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
    """A positive pair, perhaps with hard negatives for its first text; `group` is a hash."""

    first: str
    second: str
    group: bytes
    negatives: tuple[str, ...] = ()


class PositiveSource:
    """A source from which positive pairs are drawn at random."""

    def __init__(self, config: PositivesConfig, excluded: ExcludedTexts, lexicon: Lexicon) -> None:
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
        """Draw a positive pair, and edit it as configured: rewording, more hard negatives, word dropout."""
        config, pair = self.config, self._draw_unchanged(random)
        first, second, negatives = pair.first, pair.second, dict.fromkeys(pair.negatives)
        if config.rewording:
            second = reword(second, self.lexicon, random)
        # The rules cannot change every text, and may repeat a change: there can be fewer.
        for _ in range(config.hard_negatives - len(negatives)):
            if changed := change(first, self.lexicon, random):
                negatives[changed[1]] = None
        share = config.word_dropout
        if not config.rewording:
            first = drop_words(first, share, random)
        return PositivePair(first, drop_words(second, share, random), pair.group, tuple(negatives))

    def _fits(self, text: str) -> bool:
        """Return whether a text has at least one word and at most `max_words`."""
        return bool(text) and text.count(" ") < self.config.max_words

    def _draw_unchanged(self, random: np.random.Generator) -> PositivePair:
        """Draw a pair of the files, two texts of a meaning item, or a single text paired with itself."""
        if self.items:
            item = self.items[random.integers(len(self.items))]
            negatives = random.permutation(item.different)[: self.config.hard_negatives]
            return PositivePair(*item.draw_same(random), identity(item.same[0]), tuple(map(str, negatives)))
        if self.pairs:
            pair = self.pairs[random.integers(len(self.pairs))]
            # Hard negatives belong to the first text, so that such a pair is not swapped.
            swap = not pair.negatives and random.random() < 0.5
            return PositivePair(pair.second, pair.first, pair.group) if swap else pair
        # Excluded texts are met here, not in the constructor, because checking all texts takes a minute.
        for number in random.integers(len(self.texts), size=100):
            text = self.texts[number]
            if text not in self.excluded:
                return PositivePair(text, text, identity(text))
        raise InputError(f"positives {self.config.source!r}: a hundred texts in a row are excluded")


def draw_pairs(sources: list[PositiveSource], count: int, seed: int, update: int) -> list[PositivePair]:
    """Draw the positive pairs of one update from sources, with probabilities proportional to their shares."""
    random = np.random.default_rng(combined_seed(seed, update))
    shares = np.array([source.config.share for source in sources])
    chosen = random.choice(len(sources), count, p=shares / shares.sum())
    return [sources[number].draw(random) for number in chosen]


def _read_pairs(config: PositivesConfig) -> list[PositivePair]:
    """Read the pairs of JSON lines whose word overlap is within the configured bounds."""
    pairs = []
    for where, row in select_rows(config.source, config.only, config.leave_out):
        first, second = (clean(text_under(row, field, where)) for field in config.fields[:2])
        if config.min_overlap <= _word_overlap(first, second) <= config.max_overlap:
            group = identity(str(row.get("group", first)))
            negatives = [clean(text_under(row, field, where)) for field in config.fields[2:] if field in row]
            pairs.append(PositivePair(first, second, group, tuple(negatives)))
    return pairs


def _word_overlap(first: str, second: str) -> float:
    """Return the Jaccard similarity of the texts' sets of words."""
    a, b = set(first.split()), set(second.split())
    return len(a & b) / max(1, len(a | b))
