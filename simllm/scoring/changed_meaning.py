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
    """Find the pairs whose texts are similar but probably differ in meaning.

    Args:
        scores: (n,) scores of text pairs.
        same: (n,) probabilities that the two texts have the same meaning.

    Returns:
        (n,) bool, true if the score is at least 0.4 and the probability is below 0.3.
    """
    return (scores >= SIMILAR) & (same < DOUBTFUL)
