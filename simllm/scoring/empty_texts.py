"""Scores of pairs with a text that is empty after cleaning, such as a text without ASCII letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simllm.scoring.token_windows import Tokenized


def score_empty_texts(
    pairs: Sequence[tuple[Any, ...]],
    texts: Tokenized,
    values: NDArray[np.float64],
    same: NDArray[np.float64] | None,
) -> int:
    """Score the pairs in which at least one text is empty after cleaning.

    Such a pair scores 1 if its two texts, before cleaning, are equal up to white space. Otherwise, it scores
    0. The probability that both texts have the same meaning is also set to this score.

    Args:
        pairs: n tuples that begin with a candidate and its reference, before cleaning.
        texts: The 2n tokenized texts: first the n candidates, then their n references.
        values: (n,) scores of the pairs; the scores of pairs with an empty text are overwritten.
        same: (n,) probabilities that the two texts have the same meaning; those of pairs with an empty text
            are overwritten. None if the model cannot estimate them.

    Returns:
        The number of pairs in which at least one text is empty after cleaning.
    """
    n = len(pairs)
    empty = texts.empty
    either = empty[:n] | empty[n:]
    for i in np.flatnonzero(either).tolist():
        values[i] = float(pairs[i][0].split() == pairs[i][1].split())
        if same is not None:
            same[i] = values[i]
    return int(either.sum())


def count_unreadable(originals: Sequence[str], texts: Tokenized) -> int:
    """Count the texts that are empty after cleaning, but were not empty before cleaning.

    Args:
        originals: n texts before cleaning.
        texts: The same n texts, cleaned and tokenized.
    """
    return sum(bool(originals[i].strip()) for i in np.flatnonzero(texts.empty).tolist())
