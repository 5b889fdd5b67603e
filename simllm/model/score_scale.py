"""What a score means: its percentile among random pairs, and the rating to expect of people."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simllm.errors import InputError

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Calibration:
    """Part of a model folder's `simllm.json`; it holds for the folder's own pooling and similarity.

    Between two knots is a straight line, beyond the last ones all is as at the last one.
    """

    random: tuple[float, ...]  # scores of random pairs at evenly spaced percentiles, 0 to 100
    scores: tuple[float, ...]  # knots of the map to ratings, increasing
    ratings: tuple[float, ...]  # the expected rating at each knot, never decreasing
    low: tuple[float, ...]  # nine in ten ratings of such a score lie between `low` and `high`
    high: tuple[float, ...]
    fitted_on: str  # what the pairs and the ratings were

    def __post_init__(self) -> None:
        if len({len(self.scores), len(self.ratings), len(self.low), len(self.high)}) > 1:
            raise InputError("calibration: scores, ratings, low and high must be of one length")
        for name in ("random", "scores", "ratings", "low", "high"):
            values = getattr(self, name)
            if len(values) < 2 or np.any(np.diff(values) < 0):
                raise InputError(f"calibration: {name} must be two or more values that do not decrease")

    def percentile(self, scores: Values) -> Values:
        """(n,) scores -> (n,) the share of random pairs that score lower, 0 to 100."""
        return np.interp(scores, self.random, np.linspace(0, 100, len(self.random)))

    def rating(self, scores: Values) -> Values:
        """(n,) scores -> (n,) expected human ratings, on the scale of those it was fitted on."""
        return np.interp(scores, self.scores, self.ratings)

    def interval(self, scores: Values) -> tuple[Values, Values]:
        """(n,) scores -> (n,), (n,): nine in ten ratings lie between these two."""
        return np.interp(scores, self.scores, self.low), np.interp(scores, self.scores, self.high)
