"""Text pairs with human ratings, for a loss that teaches the encoder to rank the pairs by their ratings."""

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
        first: The first text of each pair.
        second: The second text of each pair.
        ratings: (B,) float32 ratings of the pairs.
        sets: (B,) int64 for each pair, the index of its file. Only ratings from the same file are comparable.
    """

    first: list[str]
    second: list[str]
    ratings: np.ndarray
    sets: np.ndarray


class RatedSource:
    """Source of text pairs with human ratings, from which pairs are chosen at random.

    The pairs come from one file or from several files.
    """

    def __init__(self, config: RatedPairsConfig, excluded: ExcludedTexts) -> None:
        """Read files of text pairs with human ratings.

        Args:
            config: The settings of the source: its files and their fields.
            excluded: Evaluation texts; pairs with such a text are left out.

        Raises:
            InputError: A file cannot be read, or no pair is left.
        """
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
        """Choose text pairs with human ratings at random, for one update (optimizer step).

        The pairs depend only on the configuration, the files, the seed and the number of the update.

        Args:
            seed: The seed of the run.
            update: Number of the update, from 0.

        Returns:
            The texts and ratings of the chosen pairs. Their number is the setting `pairs`.
        """
        random = np.random.default_rng(combined_seed(seed, update, 1))
        chosen = random.integers(len(self.rows), size=self.config.pairs)
        first, second, values, sets = zip(*(self.rows[i] for i in chosen), strict=True)
        return RatedBatch(list(first), list(second), np.array(values, np.float32), np.array(sets))
