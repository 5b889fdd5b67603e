"""The split of a corpus: the choice of held-out texts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def choose_held_out(
    comments: NDArray[np.uint64], repositories: NDArray[np.uint64], new: NDArray[np.bool_], share: float
) -> NDArray[np.bool_]:
    """Choose the held-out texts by hashes of their comments and repositories.

    Whole repositories are held out, in the order of their hashes, as long as the held-out share is not
    exceeded. Single comments are held out if their repository is unknown (0), or if whole repositories
    reach less than half of the share, because there are too few.

    Args:
        comments: (N,) hashes of the comments.
        repositories: (N,) hashes of the repositories.
        new: (N,) whether a text repeats no earlier text.
        share: The share to hold out.

    Returns:
        (N,) bool, true for held-out texts.
    """
    by_comment = comments < np.uint64(share * 2**64)
    has_repository = repositories != 0
    names, count = np.unique(repositories[has_repository & new], return_counts=True)
    quota, taken = share * count.sum(), 0
    chosen = np.zeros(len(names), bool)
    for number in range(len(names)):
        if taken + count[number] <= quota:
            chosen[number] = True
            taken += count[number]
    if taken < quota / 2:
        return by_comment
    return np.where(has_repository, np.isin(repositories, names[chosen]), by_comment)
