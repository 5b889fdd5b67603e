"""Quality of predicted probabilities: calibration error, reliability diagrams, Brier score, log loss.

Probabilities are calibrated if they agree with frequencies: of the predictions with a probability of 0.8,
80% have a positive label.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from simllm.array_types import AnyFloats

_SEED = 12345
_DRAWS = 20_000
_AT_ONCE, _MOST_DRAWN = 2_000_000, 200_000_000  # random numbers
# As in scikit-learn, a smaller probability (below 2.2e-16) is raised to this number, so that the log loss
# stays finite: an item whose true class has the probability 0 adds 36.04 nats.
LEAST_PROBABILITY = float(np.finfo(np.float64).eps)


class Bin(NamedTuple):
    """One bin of a reliability diagram: the predictions whose probability is in a certain range.

    Attributes:
        number: Number of the bin, from 0.
        size: Number of predictions in the bin.
        probability: Mean predicted probability.
        share: Share of positive labels.
    """

    number: int
    size: int
    probability: float
    share: float


def reliability(
    probabilities: AnyFloats, labels: AnyFloats, bins: int = 10, equal_mass: bool = False
) -> list[Bin]:
    """Sort (n,) predicted probabilities and their (n,) labels, 0 or 1, into bins.

    The bins have equal width, or with `equal_mass` about equally many predictions. A probability on the edge
    of two bins goes into the upper one; 1 goes into the last. Empty bins are left out.
    """
    # Otherwise, floating-point errors would put 1 - 0.9 below the edge 0.1.
    rounded = np.round(probabilities, 12)
    steps = np.arange(bins + 1) / bins
    # Quantiles of many equal probabilities are equal, too: their bins become one.
    edges = np.unique(np.round(np.quantile(rounded, steps) if equal_mass else steps, 12))
    numbers = np.searchsorted(edges[1:-1], rounded, side="right")
    sizes = np.bincount(numbers, minlength=bins)
    sums = (np.bincount(numbers, weights, minlength=bins) for weights in (probabilities, labels))
    rows = zip(range(bins), sizes, *sums, strict=False)
    return [Bin(i, int(size), float(p / size), float(label / size)) for i, size, p, label in rows if size]


def calibration_errors(diagram: list[Bin]) -> tuple[float, float]:
    """Return the expected and the maximum calibration error (ECE and MCE; Naeini et al., 2015).

    The gap of a bin is |mean probability - share of positive labels|. The ECE is the mean gap, weighted by
    bin size; the MCE is the largest gap.
    """
    sizes = np.array([each.size for each in diagram])
    gaps = np.abs([each.probability - each.share for each in diagram])
    return float(sizes @ gaps / sizes.sum()), float(gaps.max())


def consistency(probabilities: AnyFloats, labels: AnyFloats, bins: int = 10) -> tuple[float, float]:
    """Test whether (n,) probabilities are calibrated, by their expected calibration error (ECE).

    Even calibrated probabilities have an ECE above 0, by chance. To estimate this part, labels are drawn with
    the predicted probabilities (Bröcker and Smith, 2007). Returns the mean ECE over the draws, and p: the
    share of draws whose ECE is at least that of the true labels. Large n reduce the number of draws.
    """
    random = np.random.default_rng(_SEED)
    diagram = reliability(probabilities, labels, bins)
    observed, _ = calibration_errors(diagram)
    rounded = np.round(probabilities, 12)
    numbers = np.searchsorted(np.round(np.arange(1, bins) / bins, 12), rounded, side="right")
    # Only the labels change between draws: sort the predictions by bin once, and add up each bin's slice.
    order = np.argsort(numbers, kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    total = np.add.reduceat(probabilities[order], starts)
    draws = max(200, min(_DRAWS, _MOST_DRAWN // len(probabilities)))
    size = max(1, _AT_ONCE // len(probabilities))
    errors = []
    for start in range(0, draws, size):
        drawn = random.random((min(size, draws - start), len(order))) < probabilities[order]
        gaps = np.abs(np.add.reduceat(drawn, starts, axis=1, dtype=np.int64) - total)
        # The size of a bin cancels out: the weight is size / n, and the gap is |labels - total| / size.
        errors += (gaps.sum(axis=1) / len(order)).tolist()
    return float(np.mean(errors)), float((np.array(errors) >= observed - 1e-12).mean())


def fit_platt(logits: AnyFloats, labels: AnyFloats) -> tuple[float, float]:
    """Fit sigmoid(slope * logit + intercept) to (n,) labels, 0 and 1, by maximum likelihood (Platt, 1999).

    Both labels must occur.
    """

    def loss(parameters: AnyFloats) -> float:
        x = parameters[0] * logits + parameters[1]
        return float(np.mean(np.logaddexp(0.0, x) - labels * x))

    slope, intercept = minimize(loss, np.array([1.0, 0.0]), method="BFGS").x
    return float(slope), float(intercept)


def brier_score(probabilities: AnyFloats, truth: AnyFloats) -> float:
    """Compute the mean squared error of (n,) probabilities, or of (n, k) ones summed over the k classes.

    `truth` has the same shape, with 1 for what is true and 0 for what is not.
    """
    squares = (probabilities - truth) ** 2
    return float((squares if squares.ndim == 1 else squares.sum(axis=1)).mean())


def log_loss(probabilities: AnyFloats) -> float:
    """Compute the log loss, in nats, from the (n,) probabilities of the items' true classes."""
    return float(-np.log(probabilities.clip(LEAST_PROBABILITY)).mean())
