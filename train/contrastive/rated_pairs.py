"""Text pairs with human ratings, which the encoder learns to rank by their ratings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simllm.errors import InputError
from simllm.evaluation import ratings
from simllm.text_cleaning import clean
from train.contrastive.config import RatedPairsConfig
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.sources import match_files
from train.runtime.seeded_random_numbers import combined_seed


@dataclass(frozen=True)
class RatedBatch:
    """B text pairs with human ratings.

    Attributes:
        ratings: (B,) float32.
        sets: (B,) int64 index of each pair's file; only ratings from the same file are comparable.
    """

    first: list[str]
    second: list[str]
    ratings: np.ndarray
    sets: np.ndarray


class RatedSource:
    """A source of rated text pairs, from one or several files, without excluded texts."""

    def __init__(self, config: RatedPairsConfig, excluded: ExcludedTexts) -> None:
        self.config = config
        rows = [
            (clean(a), clean(b), rating, number)
            for number, file in enumerate(file for source in config.sources for file in match_files(source))
            for read in (ratings.load(file, config.fields),)
            for a, b, rating in zip(read.references, read.candidates, read.values.tolist(), strict=True)
        ]
        self.rows = [row for row in rows if row[0] not in excluded and row[1] not in excluded]
        if not self.rows:
            raise InputError(f"rated {', '.join(config.sources)}: no pair is left")

    def draw(self, seed: int, update: int) -> RatedBatch:
        """Draw the rated pairs of one update."""
        # The 1 makes the draw differ from that of positive pairs.
        random = np.random.default_rng(combined_seed(seed, update, 1))
        chosen = random.integers(len(self.rows), size=self.config.pairs)
        first, second, values, sets = zip(*(self.rows[i] for i in chosen), strict=True)
        return RatedBatch(list(first), list(second), np.array(values, np.float32), np.array(sets))
