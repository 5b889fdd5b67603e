"""The choice of the texts that are held out, to measure a model on texts it has not read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def choose_held_out(
    comments: NDArray[np.uint64], repositories: NDArray[np.uint64], new: NDArray[np.bool_], share: float
) -> NDArray[np.bool_]:
    """Return (N,) whether each text is held out, by the hashes of its comment and its repository.

    A repository is held out as a whole, in the order of the hashes, as long as it fits into
    the share of what is `new`. If those that fit do not make half the share, as when there
    are few, and where the repository is not known (0), single comments are held out.
    """
    by_comment = comments < np.uint64(share * 2**64)
    known = repositories != 0
    names, count = np.unique(repositories[known & new], return_counts=True)
    quota, taken = share * count.sum(), 0
    chosen = np.zeros(len(names), bool)
    for number in range(len(names)):
        if taken + count[number] <= quota:
            chosen[number] = True
            taken += count[number]
    if taken < quota / 2:
        return by_comment
    return np.where(known, np.isin(repositories, names[chosen]), by_comment)
