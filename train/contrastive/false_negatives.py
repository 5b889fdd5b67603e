"""Detection of false negatives: texts of another pair that have the same meaning after all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from train.contrastive.positive_pairs import PositivePair


def mark_same_meaning(pairs: Sequence[PositivePair]) -> tuple[np.ndarray, np.ndarray]:
    """Mark texts of B positive pairs and their H hard negatives that are known to have the same meaning.

    Returns (B, B) bool for the first text of pair i and the second text of pair j, and (B, H) bool for the
    first text of pair i and hard negative j.
    """
    numbers: dict[bytes | str, int] = {}

    def to_numbers(keys: Sequence[bytes | str]) -> np.ndarray:
        return np.array([numbers.setdefault(key, len(numbers)) for key in keys], int)

    group, first, second = (
        to_numbers(keys)
        for keys in ([p.group for p in pairs], [p.first for p in pairs], [p.second for p in pairs])
    )
    negatives = to_numbers([negative for pair in pairs for negative in pair.negatives])
    crossed = first[:, None] == second
    # Two pairs with a text or a group in common have four texts with the same meaning.
    same = (group[:, None] == group) | (first[:, None] == first) | (second[:, None] == second)
    same |= crossed | crossed.T
    # A hard negative that equals a text of a pair has the meaning of that pair, and of all pairs like it.
    own_negatives = (first[:, None] == negatives) | (second[:, None] == negatives)
    return same, (same.astype(np.float32) @ own_negatives) > 0
