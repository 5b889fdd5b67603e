"""The score scale: it maps a score to its percentile among random pairs, and to a human rating."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simllm.errors import InputError

Values = NDArray[np.float64]


@dataclass(frozen=True)
class ScoreScale:
    """The maps from scores to percentiles and to expected human ratings, as stored in `simllm.json`.

    The maps are valid only for the pooling and the similarity that `simllm.json` names. Each map is
    piecewise linear, and is given by points, called knots. Below the first knot and above the last knot, the
    map is constant.

    Attributes:
        random: The quantiles of the scores of random text pairs, at evenly spaced percentiles from 0 to 100.
        scores: The scores at the knots of the map to ratings; never decreasing.
        ratings: The expected human rating at each knot; never decreasing.
        low: For each knot, the lower bound of the interval that holds about 90% of the human ratings of pairs
            with this score.
        high: For each knot, the upper bound of this interval.
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

    def percentile(self, scores: Values) -> Values:
        """Map (n,) scores to percentiles: the percentage, 0 to 100, of random text pairs that score lower."""
        return np.interp(scores, self.random, np.linspace(0, 100, len(self.random)))

    def rating(self, scores: Values) -> Values:
        """Map (n,) scores to the human ratings expected for them, on the scale that the human raters used."""
        return np.interp(scores, self.scores, self.ratings)

    def interval(self, scores: Values) -> tuple[Values, Values]:
        """Map scores to intervals that hold about 90% of the human ratings of pairs with such scores.

        Args:
            scores: (n,) scores.

        Returns:
            (n,) lower bounds and (n,) upper bounds of the intervals.
        """
        return np.interp(scores, self.scores, self.low), np.interp(scores, self.scores, self.high)
