"""Calibration of the model: maps from the score of a text pair to a percentile and an expected rating."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simllm.array_types import Floats
from simllm.errors import InputError


@dataclass(frozen=True)
class ScoreScale:
    """The maps from scores to percentiles and ratings, valid only for the pooling and similarity beside them.

    Each map is given by points, called knots. It is linear between knots and constant outside of them.

    Attributes:
        random: Scores of random text pairs at evenly spaced percentiles from 0 to 100. For example,
            (0.1, 0.3, 0.9) are the scores at the percentiles 0, 50 and 100.
        scores: Scores at the knots of the map to ratings, not decreasing, as are `ratings`, `low` and `high`.
        low: Lower bounds of the interval that holds about 90% of the ratings of pairs with such a score.
        high: Upper bounds of this interval.
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
        """Map (n,) scores to the percentage, 0 to 100, of random text pairs that score lower."""
        return np.interp(scores, self.random, np.linspace(0, 100, len(self.random)))

    def rating(self, scores: Floats) -> Floats:
        """Map (n,) scores to expected human ratings, on the scale that the raters used."""
        return np.interp(scores, self.scores, self.ratings)

    def interval(self, scores: Floats) -> tuple[Floats, Floats]:
        """Map (n,) scores to lower and upper bounds of intervals that hold about 90% of the human ratings."""
        return np.interp(scores, self.scores, self.low), np.interp(scores, self.scores, self.high)
