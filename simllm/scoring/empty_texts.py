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
    """Overwrite the (n,) `values` and `same` of pairs with a text that is empty after cleaning; count them.

    Such a pair gets 1 if its two texts, before cleaning, are equal up to white space; otherwise 0.
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
    """Count the texts that are empty after cleaning, but were not empty before (`originals`)."""
    return sum(bool(originals[i].strip()) for i in np.flatnonzero(texts.empty).tolist())
