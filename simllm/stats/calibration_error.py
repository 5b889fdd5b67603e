"""Calibration error of predicted probabilities, and reliability diagrams.

Probabilities are calibrated if they agree with frequencies: among the predictions with a probability of 0.8,
80% have a positive label.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simllm.array_types import AnyFloats

_SEED = 12345
_AT_ONCE, _MOST_DRAWN = 2_000_000, 200_000_000  # random numbers


class Bin(NamedTuple):
    """One bin of a reliability diagram: the predictions whose probability is in a certain range.

    Attributes:
        number: Number of the bin, from 0.
        size: Number of predictions in the bin.
        probability: Mean predicted probability.
        share: Share of the predictions whose label is positive, from 0 to 1.
    """

    number: int
    size: int
    probability: float
    share: float


def reliability(
    probabilities: AnyFloats, labels: AnyFloats, bins: int = 10, equal_mass: bool = False
) -> list[Bin]:
    """Sort predicted probabilities into bins, for a reliability diagram.

    Such a diagram shows for each bin the mean predicted probability and the share of positive labels.

    A probability on the edge of two bins goes into the upper bin; 1 goes into the last bin. Probabilities and
    edges are first rounded to 12 decimals. Otherwise, floating-point errors would put 1 - 0.9 below the edge
    0.1.

    Args:
        probabilities: (n,) predicted probabilities.
        labels: (n,) true labels, 0 or 1.
        bins: Number of bins.
        equal_mass: Whether the bins have about equally many predictions. Otherwise, the range from 0 to 1 is
            divided into bins of equal width.

    Returns:
        The bins with at least one prediction, from the lowest probability to the highest.
    """
    rounded = np.round(probabilities, 12)
    steps = np.arange(bins + 1) / bins
    edges = np.unique(np.round(np.quantile(rounded, steps) if equal_mass else steps, 12))
    numbers = np.searchsorted(edges[1:-1], rounded, side="right")
    sizes = np.bincount(numbers, minlength=bins)
    sums = (np.bincount(numbers, weights, minlength=bins) for weights in (probabilities, labels))
    rows = zip(range(bins), sizes, *sums, strict=False)
    return [Bin(i, int(size), float(p / size), float(label / size)) for i, size, p, label in rows if size]


def calibration_errors(diagram: list[Bin]) -> tuple[float, float]:
    """Measure how far predicted probabilities are from the shares of positive labels.

    The gap of a bin is |mean probability - share of positive labels|.

    Args:
        diagram: The bins of a reliability diagram.

    Returns:
        The expected calibration error (ECE; Naeini et al., 2015), which is the mean gap, weighted by bin
        size; and the maximum calibration error (MCE), which is the largest gap.
    """
    sizes = np.array([each.size for each in diagram])
    gaps = np.abs([each.probability - each.share for each in diagram])
    return float(sizes @ gaps / sizes.sum()), float(gaps.max())


def consistency(
    probabilities: AnyFloats, labels: AnyFloats, bins: int = 10, draws: int = 20_000
) -> tuple[float, float]:
    """Test whether predicted probabilities are calibrated, by their expected calibration error (ECE).

    For the ECE, the predictions are sorted into bins. The gap of a bin is the absolute difference between its
    mean predicted probability and its share of positive labels. The ECE is the mean gap, weighted by bin
    size.

    Even calibrated probabilities have an ECE above 0, by chance. To estimate this part of the ECE, labels are
    drawn at random: each label is positive with exactly the predicted probability (Bröcker and Smith, 2007).
    The test compares the ECE with these labels to the ECE with the true labels.

    Args:
        probabilities: (n,) predicted probabilities.
        labels: (n,) true labels, 0 or 1.
        bins: Number of bins of equal width.
        draws: How often the n labels are drawn. For large n, the number is reduced to save time.

    Returns:
        The mean ECE over the draws, and the p-value. The p-value is the share of draws whose ECE is at least
        as large as the ECE with the true labels.
    """
    random = np.random.default_rng(_SEED)
    diagram = reliability(probabilities, labels, bins)
    observed, _ = calibration_errors(diagram)
    rounded = np.round(probabilities, 12)
    numbers = np.searchsorted(np.round(np.arange(1, bins) / bins, 12), rounded, side="right")
    order = np.argsort(numbers, kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    total = np.add.reduceat(probabilities[order], starts)
    draws = max(200, min(draws, _MOST_DRAWN // len(probabilities)))
    size = max(1, _AT_ONCE // len(probabilities))
    errors = []
    for start in range(0, draws, size):
        drawn = random.random((min(size, draws - start), len(order))) < probabilities[order]
        gaps = np.abs(np.add.reduceat(drawn, starts, axis=1, dtype=np.int64) - total)
        errors += (gaps.sum(axis=1) / len(order)).tolist()
    return float(np.mean(errors)), float((np.array(errors) >= observed - 1e-12).mean())
