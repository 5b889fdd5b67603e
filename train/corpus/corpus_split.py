"""The split of a corpus into training texts and held-out texts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def choose_held_out(
    comments: NDArray[np.uint64], repositories: NDArray[np.uint64], new: NDArray[np.bool_], share: float
) -> NDArray[np.bool_]:
    """Choose the held-out texts by hashes, so that the choice is reproducible: (N,) bool.

    Whole repositories are held out, in the order of their hashes, up to `share` of the texts from known
    repositories. Other texts are held out by the hash of their comment.

    Args:
        comments: (N,) hash of each text's comment.
        repositories: (N,) hash of each text's repository; 0 if unknown.
        new: (N,) whether the text repeats no earlier text; only such texts are counted.
        share: The share of texts to hold out, between 0 and 1.
    """
    # All texts of a comment have the same hash here, and stay together.
    by_comment = comments < np.uint64(share * 2**64)
    has_repository = repositories != 0
    names, count = np.unique(repositories[has_repository & new], return_counts=True)
    quota, taken = share * count.sum(), 0
    chosen = np.zeros(len(names), bool)
    for number in range(len(names)):
        # A repository that would exceed the limit is skipped; a smaller one may still fit.
        if taken + count[number] <= quota:
            chosen[number] = True
            taken += count[number]
    # The repositories are too large to hold out: then none of them is kept together.
    if taken < quota / 2:
        return by_comment
    return np.where(has_repository, np.isin(repositories, names[chosen]), by_comment)
