"""Rated pairs for the contrastive stage: the more alike is to score higher."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simllm.errors import InputError
from simllm.evaluation import ratings
from simllm.text import clean
from train.corpus.decontaminate import Evaluated
from train.corpus.sources import matching
from train.pretrain.batches import seed_of
from train.runtime.config import RatedConfig


@dataclass(frozen=True)
class Drawn:
    """B rated pairs."""

    first: list[str]
    second: list[str]
    ratings: np.ndarray  # (B,) float32
    sets: np.ndarray  # (B,) int64; ratings of different sets do not compare


class Rated:
    """Pairs that people have rated."""

    def __init__(self, config: RatedConfig, excluded: Evaluated) -> None:
        """Read the sources; pairs with a text in `excluded` are left out."""
        self.config = config
        rows = [
            (clean(a), clean(b), rating, number)
            for number, file in enumerate(file for source in config.sources for file in matching(source))
            for read in (ratings.load(file, config.fields),)
            for a, b, rating in zip(read.references, read.candidates, read.values.tolist(), strict=True)
        ]
        self.rows = [row for row in rows if row[0] not in excluded and row[1] not in excluded]
        if not self.rows:
            raise InputError(f"rated {', '.join(config.sources)}: no pair is left")

    def draw(self, seed: int, update: int) -> Drawn:
        """The pairs of an update: a function of (seed, update)."""
        random = np.random.default_rng(seed_of(seed, update, 1))
        chosen = random.integers(len(self.rows), size=self.config.pairs)
        first, second, values, sets = zip(*(self.rows[i] for i in chosen), strict=True)
        return Drawn(list(first), list(second), np.array(values, np.float32), np.array(sets))
