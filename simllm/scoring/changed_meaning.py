"""The rule that marks two similar texts as "meaning may have changed", if they probably differ in meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the command line reads the note, and numpy is slow to import
    import numpy as np
    from numpy.typing import NDArray

CHANGED = "meaning may have changed"
SIMILAR = 0.4  # lowest score of similar texts
DOUBTFUL = 0.3  # if the probability of the same meaning is lower, the meaning may have changed


def meaning_may_have_changed(scores: NDArray[np.float64], same: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return (n,) bool from (n,) scores and (n,) probabilities of the same meaning."""
    return (scores >= SIMILAR) & (same < DOUBTFUL)
