"""Brier score and log loss, which measure the errors of predicted probabilities; lower is better.

The Brier score is the mean squared error. The log loss is the mean negative log-likelihood of the true
classes, in nats. As in scikit-learn, a probability below 2.2e-16 (the epsilon of 64-bit floats) is raised to
this number, so that the log loss stays finite: an item whose true class has the probability 0 adds 36.04.
"""

from __future__ import annotations

import numpy as np

from simllm.array_types import Floats, Ints

LEAST_PROBABILITY = float(np.finfo(np.float64).eps)


def binary_brier(chances: Floats, labels: Floats) -> float:
    """Compute the Brier score of a classifier with two classes; lower is better.

    The score is the mean of (probability - label) squared.

    Args:
        chances: (n,) probabilities of the positive class.
        labels: (n,) true labels: 1 for positive items, 0 for negative ones.
    """
    return float(((chances - labels) ** 2).mean())


def multiclass_brier(chances: Floats, gold: Ints) -> float:
    """Compute the Brier score of a classifier with k classes; lower is better.

    The error of a probability is its difference from 1 for the true class, and from 0 for the other classes.
    The k squared errors of each item are added. The score is the mean of these sums over the items.

    Args:
        chances: (n, k) probabilities of the classes.
        gold: (n,) indices of the true classes.
    """
    squares = ((chances - np.eye(chances.shape[1])[gold]) ** 2).sum(axis=1)
    return float(squares.mean())


def binary_log_loss(chances: Floats, labels: Floats) -> float:
    """Compute the log loss of a classifier with two classes.

    Args:
        chances: (n,) probabilities of the positive class.
        labels: (n,) true labels: 1 for positive items, 0 for negative ones.
    """
    return _log_loss(np.where(labels == 1, chances, 1 - chances))


def multiclass_log_loss(chances: Floats, gold: Ints) -> float:
    """Compute the log loss of a classifier with k classes.

    Args:
        chances: (n, k) probabilities of the classes.
        gold: (n,) indices of the true classes.
    """
    return _log_loss(chances[np.arange(len(gold)), gold])


def _log_loss(chances: Floats) -> float:
    """Compute the log loss of n predictions from the (n,) probabilities of the items' true classes."""
    return float(-np.log(chances.clip(LEAST_PROBABILITY)).mean())
