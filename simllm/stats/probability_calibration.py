"""Calibration of probabilities: of the pairs with probability .8, 80% should have a positive label."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Floats = NDArray[np.floating]


class Bin(NamedTuple):
    """One bin of a reliability diagram."""

    size: int
    probability: float  # mean probability
    share: float  # share of positive labels


def reliability(probabilities: Floats, labels: Floats, bins: int = 10) -> list[Bin]:
    """Sort probabilities into bins of equal width, for a reliability diagram.

    Args:
        probabilities: (n,) from 0 to 1.
        labels: (n,) 0 or 1.
        bins: Number of bins.

    Returns:
        The bins that hold at least one probability, from the lowest.
    """
    numbers = np.minimum((probabilities * bins).astype(int), bins - 1)
    return [
        Bin(int(chosen.sum()), float(probabilities[chosen].mean()), float(labels[chosen].mean()))
        for number in range(bins)
        if (chosen := numbers == number).any()
    ]


def expected_calibration_error(probabilities: Floats, labels: Floats, bins: int = 10) -> float:
    """Return the mean distance of probability and share, weighted by bin size (Naeini et al., 2015)."""
    diagram = reliability(probabilities, labels, bins)
    total = sum(each.size for each in diagram)
    return sum(each.size * abs(each.probability - each.share) for each in diagram) / total


def fit_platt(logits: Floats, labels: Floats) -> tuple[float, float]:
    """Fit slope and intercept of sigmoid(slope * logit + intercept) by maximum likelihood (Platt, 1999).

    Args:
        logits: (n,) logits.
        labels: (n,) 0 or 1, both present.

    Returns:
        The slope and the intercept.
    """

    def loss(parameters: Floats) -> float:
        x = parameters[0] * logits + parameters[1]
        return float(np.mean(np.logaddexp(0.0, x) - labels * x))

    slope, intercept = minimize(loss, np.array([1.0, 0.0]), method="BFGS").x
    return float(slope), float(intercept)
