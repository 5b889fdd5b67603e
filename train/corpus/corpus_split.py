"""The split of a corpus into training texts and held-out (test) texts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def choose_held_out(
    comments: NDArray[np.uint64], repositories: NDArray[np.uint64], new: NDArray[np.bool_], share: float
) -> NDArray[np.bool_]:
    """Choose the held-out (test) texts by hashes, so that the choice is reproducible.

    There are two rules:

    - Texts from known repositories: whole repositories are held out, so that no repository has both training
      and test texts. Repositories are added in the order of their hashes. At most the share `share` of all
      texts from known repositories is held out. A repository that would exceed this limit is skipped.
    - Texts from unknown repositories: a text is held out if the hash of its comment, divided by 2^64, is
      below `share`.

    If the first rule holds out less than half of its limit, for example because all repositories are large,
    the second rule is used for all texts.

    Args:
        comments: (N,) for each text, a hash of the code comment from which the text was taken. A comment can
            have several texts, such as its first sentence and its other paragraphs.
        repositories: (N,) for each text, a hash of its repository; 0 if unknown.
        new: (N,) for each text, true if it repeats no earlier text. Only such texts are counted when the
            repositories are chosen.
        share: The share of texts to hold out, between 0 and 1.

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
