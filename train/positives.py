"""Positives for the contrastive stage: pairs of texts that are to mean the same."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simllm.errors import InputError
from simllm.files import lines, objects, text_under
from simllm.text import clean
from train.batches import seed_of
from train.config import PositivesConfig
from train.corpus.evaluated import Evaluated
from train.corpus.sources import matching
from train.corpus.words import identity


@dataclass(frozen=True)
class Pair:
    """Two texts that mean the same; pairs of one group are positives of each other, too."""

    first: str
    second: str
    group: bytes


class Positives:
    """One source of pairs, to be drawn from."""

    def __init__(self, config: PositivesConfig, excluded: Evaluated) -> None:
        """Read the source; pairs with a text in `excluded` are left out."""
        self.config = config
        self.pairs = [
            pair
            for file in matching(config.source)
            for pair in (_views(file) if config.word_dropout else _pairs(file, config))
            if pair.first not in excluded and pair.second not in excluded
        ]
        if not self.pairs:
            raise InputError(f"positives {config.source!r}: no pair is left")

    def draw(self, random: np.random.Generator) -> Pair:
        """Draw one pair; views are made anew each time."""
        pair = self.pairs[random.integers(len(self.pairs))]
        share = self.config.word_dropout
        return Pair(_drop(pair.first, share, random), _drop(pair.second, share, random), pair.group)


def draw(positives: list[Positives], count: int, seed: int, update: int) -> list[Pair]:
    """The pairs of an update: a function of (seed, update); sources by their shares."""
    random = np.random.default_rng(seed_of(seed, update))
    shares = np.array([source.config.share for source in positives])
    chosen = random.choice(len(positives), count, p=shares / shares.sum())
    return [positives[number].draw(random) for number in chosen]


def _views(file: Path) -> list[Pair]:
    """Every text of a cleaned corpus paired with itself."""
    return [Pair(text, text, identity(text)) for _, text in lines(file) if text]


def _pairs(file: Path, config: PositivesConfig) -> list[Pair]:
    pairs = []
    for where, row in objects(file):
        first, second = (clean(text_under(row, field, where)) for field in config.fields)
        if config.min_overlap <= _overlap(first, second) <= config.max_overlap:
            group = str(row.get("group", first))
            pairs.append(Pair(first, second, identity(group)))
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
