"""Brier score and log loss, which measure the errors of predicted probabilities; lower is better.

The Brier score is the mean squared error. The log loss is the mean negative log-likelihood of the true
classes, in nats. `chances` are (n,) probabilities of the positive class with (n,) `labels`, 0 or 1; or (n, k)
probabilities with (n,) class numbers `gold`.
"""

from __future__ import annotations

import numpy as np

from simllm.array_types import Floats, Ints

# As in scikit-learn, a smaller probability (below 2.2e-16) is raised to this number, so that the log loss
# stays finite: an item whose true class has the probability 0 adds 36.04 nats.
LEAST_PROBABILITY = float(np.finfo(np.float64).eps)


def binary_brier(chances: Floats, labels: Floats) -> float:
    """Compute the mean of (probability - label)²."""
    return float(((chances - labels) ** 2).mean())


def multiclass_brier(chances: Floats, gold: Ints) -> float:
    """Compute the mean over items of the sum of the k squared errors.

    An error is the difference from 1 for the true class, and from 0 for the other classes.
    """
    squares = ((chances - np.eye(chances.shape[1])[gold]) ** 2).sum(axis=1)
    return float(squares.mean())


def binary_log_loss(chances: Floats, labels: Floats) -> float:
    """Compute the log loss of a classifier with two classes."""
    return _log_loss(np.where(labels == 1, chances, 1 - chances))


def multiclass_log_loss(chances: Floats, gold: Ints) -> float:
    """Compute the log loss of a classifier with k classes."""
    return _log_loss(chances[np.arange(len(gold)), gold])


def _log_loss(chances: Floats) -> float:
    """Compute the log loss from the (n,) probabilities of the items' true classes."""
    return float(-np.log(chances.clip(LEAST_PROBABILITY)).mean())
