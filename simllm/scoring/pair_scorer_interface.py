"""Interface of the scorers of text pairs: what a scorer takes, and what it returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simllm.scoring.token_windows import Tokenized

Values = NDArray[np.float64]


class PairValues(NamedTuple):
    """The results of a scorer for n text pairs.

    Attributes:
        scores: (n,) scores.
        same: (n,) probabilities that the two texts have the same meaning; None if the model cannot
            estimate them.
    """

    scores: Values
    same: Values | None = None


# A function that takes 2n tokenized texts: first the n candidates, then their n references.
PairScorer = Callable[[Tokenized], PairValues]
