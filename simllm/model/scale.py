"""Calibration of the model: maps from the score of a text pair to a percentile and an expected rating.

The score is the similarity of the two texts. The percentile is the percentage of random text pairs that score
lower. The expected rating estimates how human raters would rate the text pair. Both maps are stored in the
file `simllm.json` of the model folder.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simllm.array_types import Floats
from simllm.errors import InputError


@dataclass(frozen=True)
class ScoreScale:
    """The maps from the similarity score of two texts to a percentile and to the expected human rating.

    The percentile is the percentage of random text pairs that score lower. Both maps are stored in
    `simllm.json`, and are valid only for the pooling and the similarity that this file names. Each map is
    given by points, called knots. It is linear between two knots, and constant below the first knot and above
    the last one.

    Attributes:
        random: The knots of the map to percentiles: scores of random text pairs at evenly spaced percentiles
            from 0 to 100. For example, (0.1, 0.3, 0.9) are the scores at the percentiles 0, 50 and 100.
        scores: The scores at the knots of the map to ratings; never decreasing.
        ratings: For each score in `scores`, the expected human rating; never decreasing.
        low: For each score in `scores`, the lower bound of the interval that holds about 90% of the human
            ratings of text pairs with this score.
        high: For each score in `scores`, the upper bound of this interval.
        fitted_on: Description of the text pairs and ratings to which the maps were fitted.
    """

    random: tuple[float, ...]
    scores: tuple[float, ...]
    ratings: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    fitted_on: str

    def __post_init__(self) -> None:
        if len({len(self.scores), len(self.ratings), len(self.low), len(self.high)}) > 1:
            raise InputError("calibration: scores, ratings, low and high must be of one length")
        for name in ("random", "scores", "ratings", "low", "high"):
            values = getattr(self, name)
            if len(values) < 2 or np.any(np.diff(values) < 0):
                raise InputError(f"calibration: {name} must be two or more values that do not decrease")
        if np.any(np.array(self.low) > np.array(self.high)):
            raise InputError("calibration: low must not be above high")

    def percentile(self, scores: Floats) -> Floats:
        """Map scores of text pairs to percentiles.

        Args:
            scores: (n,) scores of text pairs.

        Returns:
            (n,) percentiles. A percentile is the percentage, 0 to 100, of random text pairs that score lower.
        """
        return np.interp(scores, self.random, np.linspace(0, 100, len(self.random)))

    def rating(self, scores: Floats) -> Floats:
        """Map (n,) scores of text pairs to expected human ratings, on the scale that the raters used."""
        return np.interp(scores, self.scores, self.ratings)

    def interval(self, scores: Floats) -> tuple[Floats, Floats]:
        """Map scores to intervals that hold about 90% of the human ratings of text pairs with such scores.

        Args:
            scores: (n,) scores of text pairs.

        Returns:
            (n,) lower bounds and (n,) upper bounds of the intervals.
        """
        return np.interp(scores, self.scores, self.low), np.interp(scores, self.scores, self.high)
