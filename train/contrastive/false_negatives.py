"""Detection of false negatives for contrastive training.

A negative is a text of another pair, which the model learns to tell apart from a given text. A false negative
has the same meaning as the given text after all. It must not be used as a negative.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from train.contrastive.positive_pairs import PositivePair


def mark_same_meaning(pairs: Sequence[PositivePair]) -> tuple[np.ndarray, np.ndarray]:
    """Find out which texts of different positive pairs are known to have the same meaning.

    Such texts must not serve as negatives for each other. A positive pair is two texts with the same meaning.
    If two pairs have a text in common, or the same `group` (a name for their meaning), all four texts have
    the same meaning. A hard negative (a text with another meaning than its own pair) may equal a text of
    another pair. Then it has the same meaning as both texts of the other pair.

    Args:
        pairs: B positive pairs, with H hard negatives in total.

    Returns:
        Two bool arrays. Entry (i, j) of the first array, (B, B), is true if the first text of pair i and the
        second text of pair j have the same meaning. Entry (i, j) of the second array, (B, H), is true if the
        first text of pair i and hard negative j have the same meaning.
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
    same = (group[:, None] == group) | (first[:, None] == first) | (second[:, None] == second)
    same |= crossed | crossed.T
    own_negatives = (first[:, None] == negatives) | (second[:, None] == negatives)
    return same, (same.astype(np.float32) @ own_negatives) > 0
