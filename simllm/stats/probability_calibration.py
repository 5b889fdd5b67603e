"""Calibration of predicted probabilities.

Probabilities are calibrated if they agree with frequencies: of the pairs with a predicted probability
of 0.8, 80% have a positive label.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Floats = NDArray[np.floating]


class Bin(NamedTuple):
    """One bin of a reliability diagram: the predictions whose probability is in a certain range.

    Attributes:
        size: Number of predictions in the bin.
        probability: Mean predicted probability.
        share: Share of the predictions whose label is positive, from 0 to 1.
    """

    size: int
    probability: float
    share: float


def reliability(probabilities: Floats, labels: Floats, bins: int = 10) -> list[Bin]:
    """Sort predicted probabilities into bins of equal width, for a reliability diagram.

    Args:
        probabilities: (n,) predicted probabilities.
        labels: (n,) true labels, 0 or 1.
        bins: Number of bins between 0 and 1.

    Returns:
        The bins that hold at least one prediction, from the lowest probability to the highest.
    """
    numbers = np.minimum((probabilities * bins).astype(int), bins - 1)
    return [
        Bin(int(chosen.sum()), float(probabilities[chosen].mean()), float(labels[chosen].mean()))
        for number in range(bins)
        if (chosen := numbers == number).any()
    ]


def expected_calibration_error(probabilities: Floats, labels: Floats, bins: int = 10) -> float:
    """Measure how far predicted probabilities are from the shares of positive labels.

    Predictions are sorted into bins of equal width. The error is the mean of |mean probability - share of
    positive labels| over the bins, weighted by bin size (Naeini et al., 2015).

    Args:
        probabilities: (n,) predicted probabilities.
        labels: (n,) true labels, 0 or 1.
        bins: Number of bins between 0 and 1.
    """
    diagram = reliability(probabilities, labels, bins)
    total = sum(each.size for each in diagram)
    return sum(each.size * abs(each.probability - each.share) for each in diagram) / total


def fit_platt(logits: Floats, labels: Floats) -> tuple[float, float]:
    """Fit the formula sigmoid(slope * logit + intercept), which turns logits into calibrated probabilities.

    The fit is by maximum likelihood (Platt, 1999).

    Args:
        logits: (n,) outputs of a model.
        labels: (n,) true labels, 0 or 1; both must occur.

    Returns:
        The slope and the intercept.
    """

    def loss(parameters: Floats) -> float:
        x = parameters[0] * logits + parameters[1]
        return float(np.mean(np.logaddexp(0.0, x) - labels * x))

    slope, intercept = minimize(loss, np.array([1.0, 0.0]), method="BFGS").x
    return float(slope), float(intercept)
