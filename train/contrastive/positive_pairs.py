"""Positives for the contrastive stage: pairs of texts that are to mean the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simllm.errors import InputError
from simllm.io.files import lines, objects, text_under
from simllm.perturb.summaries.lexicon import Lexicon
from simllm.perturb.summaries.meaning_changes import change
from simllm.perturb.summaries.rewording import reword
from simllm.text import clean
from train.corpus.decontaminate import Evaluated
from train.corpus.sources import matching
from train.corpus.text_identity import identity
from train.pretrain.batches import seed_of
from train.runtime.config import PositivesConfig


@dataclass(frozen=True)
class Pair:
    """Two texts that mean the same; pairs of one group are positives of each other, too."""

    first: str
    second: str
    group: bytes
    negatives: tuple[str, ...] = ()  # they look like the first, and mean something else


class Positives:
    """One source of pairs, to be drawn from."""

    def __init__(self, config: PositivesConfig, excluded: Evaluated, lexicon: Lexicon) -> None:
        """Read the source; pairs with a text in `excluded` are left out."""
        self.config, self.excluded, self.lexicon = config, excluded, lexicon
        files = matching(config.source)
        self.texts = (
            [] if config.fields else [text for file in files for _, text in lines(file) if self._fits(text)]
        )
        self.pairs = [
            pair
            for file in files
            if config.fields
            for pair in _pairs(file, config)
            if self._fits(pair.first) and self._fits(pair.second)
            if pair.first not in excluded and pair.second not in excluded
        ]
        if not len(self):
            raise InputError(f"positives {config.source!r}: no pair is left")

    def __len__(self) -> int:
        return len(self.texts or self.pairs)

    def draw(self, random: np.random.Generator) -> Pair:
        """Draw one pair; views, rewordings and hard negatives are made anew each time."""
        config, pair = self.config, self._one(random)
        first, second, negatives = pair.first, pair.second, dict.fromkeys(pair.negatives)
        if config.rewording:
            second = reword(second, self.lexicon, random)
        for _ in range(config.hard_negatives - len(negatives)):
            if changed := change(first, self.lexicon, random):
                negatives[changed[1]] = None
        share = config.word_dropout
        if not config.rewording:
            first = _drop(first, share, random)
        return Pair(first, _drop(second, share, random), pair.group, tuple(negatives))

    def _fits(self, text: str) -> bool:
        return bool(text) and text.count(" ") < self.config.max_words

    def _one(self, random: np.random.Generator) -> Pair:
        if self.pairs:
            pair = self.pairs[random.integers(len(self.pairs))]
            turn = not pair.negatives and random.random() < 0.5
            return Pair(pair.second, pair.first, pair.group) if turn else pair
        for number in random.integers(len(self.texts), size=100):  # checking all of them takes a minute
            text = self.texts[number]
            if text not in self.excluded:
                return Pair(text, text, identity(text))
        raise InputError(f"positives {self.config.source!r}: a hundred texts in a row are excluded")


def draw(positives: list[Positives], count: int, seed: int, update: int) -> list[Pair]:
    """The pairs of an update: a function of (seed, update); sources by their shares."""
    random = np.random.default_rng(seed_of(seed, update))
    shares = np.array([source.config.share for source in positives])
    chosen = random.choice(len(positives), count, p=shares / shares.sum())
    return [positives[number].draw(random) for number in chosen]


def same_meaning(pairs: Sequence[Pair]) -> tuple[np.ndarray, np.ndarray]:
    """(B, B) whether the first text of one pair and the second of another mean the same, as far
    as is known, and (B, H) whether the first of one does and any pair's hard negative.

    Texts mean the same that are equal, or of one pair, or of pairs of one group.
    """
    numbers: dict[bytes | str, int] = {}

    def numbered(keys: Sequence[bytes | str]) -> np.ndarray:
        return np.array([numbers.setdefault(key, len(numbers)) for key in keys], int)

    group, first, second = (
        numbered(keys)
        for keys in ([p.group for p in pairs], [p.first for p in pairs], [p.second for p in pairs])
    )
    negatives = numbered([negative for pair in pairs for negative in pair.negatives])
    crossed = first[:, None] == second
    same = (group[:, None] == group) | (first[:, None] == first) | (second[:, None] == second)
    same |= crossed | crossed.T
    known = (first[:, None] == negatives) | (second[:, None] == negatives)
    return same, (same.astype(np.float32) @ known) > 0


def _pairs(file: Path, config: PositivesConfig) -> list[Pair]:
    pairs = []
    for where, row in objects(file):
        first, second = (clean(text_under(row, field, where)) for field in config.fields[:2])
        if config.min_overlap <= _overlap(first, second) <= config.max_overlap:
            group = identity(str(row.get("group", first)))
            negatives = [clean(text_under(row, field, where)) for field in config.fields[2:] if field in row]
            pairs.append(Pair(first, second, group, tuple(negatives)))
    return pairs


def _overlap(first: str, second: str) -> float:
    """Jaccard similarity of the words."""
    a, b = set(first.split()), set(second.split())
    return len(a & b) / max(1, len(a | b))


def _drop(text: str, share: float, random: np.random.Generator) -> str:
    """Leave out this share of the words, but never the last one left."""
    if not share:
        return text
    words = text.split()
    kept = [word for word, draw in zip(words, random.random(len(words)), strict=True) if draw >= share]
    return " ".join(kept) or words[random.integers(len(words))]
