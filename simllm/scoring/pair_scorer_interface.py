"""Interface of the scorers of text pairs: what a scorer takes, and what it returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from simllm.array_types import Floats
from simllm.scoring.token_windows import Tokenized


class PairValues(NamedTuple):
    """The results of a scorer for n pairs.

    Attributes:
        scores: (n,) scores.
        same: (n,) probabilities that the two texts have the same meaning; None if the model has no head.
    """

    scores: Floats
    same: Floats | None = None


# A function that takes 2n tokenized texts: first the n candidates, then their n references.
PairScorer = Callable[[Tokenized], PairValues]
