"""Pairwise accuracy: how often the scores of two items have the same order as their ratings."""

from __future__ import annotations

import numpy as np

from simllm.array_types import Floats

_MOST_PAIRS = 2_000_000  # largest number of pairs of items that are compared
_SEED = 12345


def pairwise_accuracy(scores: Floats, ratings: Floats) -> float:
    """Compute the share of item pairs for which (n,) scores give the same order as (n,) ratings.

    Two items with equal ratings should have tied scores, and others should not. Scores are tied if they
    differ by at most the threshold that gives the highest accuracy (acc*eq in Deutsch, Foster and Freitag,
    "Ties matter", 2023). NaN with fewer than two items or with a NaN.
    """
    n = len(scores)
    if n < 2 or np.isnan([scores, ratings]).any():
        return float("nan")
    if n * (n - 1) // 2 <= _MOST_PAIRS:
        a, b = np.triu_indices(n, 1)
    else:
        random = np.random.default_rng(_SEED)
        # The offset is at least 1, so that no item is paired with itself.
        a = random.integers(n, size=_MOST_PAIRS)
        b = (a + random.integers(1, n, size=_MOST_PAIRS)) % n
    by_score, by_rating = scores[a] - scores[b], np.sign(ratings[a] - ratings[b])
    # Continuous scores are hardly ever equal, so each difference is tried as the threshold of a tie.
    order = np.argsort(np.abs(by_score), kind="stable")
    size, tied = np.abs(by_score)[order], (by_rating == 0)[order]
    agree = ((np.sign(by_score) == by_rating) & (by_rating != 0))[order]
    # correct[k]: correct pairs if the k smallest differences count as ties; equal differences stay together
    correct = np.concatenate([[0], np.cumsum(tied)]) + agree.sum() - np.concatenate([[0], np.cumsum(agree)])
    whole = np.concatenate([[True], np.diff(size) > 0, [True]])
    return float(correct[whole].max() / len(a))
