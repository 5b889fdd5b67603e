"""The score scale: percentiles of scores among random pairs, and expected human ratings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simllm.errors import InputError

Values = NDArray[np.float64]


@dataclass(frozen=True)
class ScoreScale:
    """Maps from scores to percentiles and ratings, stored in `simllm.json`.

    They are valid for the pooling and similarity of the model folder only. Between knots they are
    linear; outside of the knots they are constant.

    Attributes:
        random: Scores of random pairs at evenly spaced percentiles from 0 to 100.
        scores: Knots of the map to ratings, increasing.
        ratings: Expected rating at each knot, not decreasing.
        low: Lower bound of the 90% interval of ratings at each knot.
        high: Upper bound of that interval.
        fitted_on: The source of the pairs and ratings.
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

    def percentile(self, scores: Values) -> Values:
        """Return the percentage of random pairs that score lower than each of (n,) scores, 0 to 100."""
        return np.interp(scores, self.random, np.linspace(0, 100, len(self.random)))

    def rating(self, scores: Values) -> Values:
        """Return the expected human ratings of (n,) scores, on the scale of the fitted ratings."""
        return np.interp(scores, self.scores, self.ratings)

    def interval(self, scores: Values) -> tuple[Values, Values]:
        """Return the (n,) lower and (n,) upper bounds of the 90% interval of ratings for (n,) scores."""
        return np.interp(scores, self.scores, self.low), np.interp(scores, self.scores, self.high)
