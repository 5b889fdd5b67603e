"""The scores that the learned metric gives to text pairs, with percentiles and expected human ratings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simllm.errors import InputError
from simllm.model.percentiles_and_expected_ratings import ScoreScale
from simllm.scoring.changed_meaning import meaning_may_have_changed

if TYPE_CHECKING:
    import pandas

SCALES = ("raw", "percentile", "rating", "same")
COUNTS = ("empty", "unreadable", "truncated", "deduplicated")


@dataclass(frozen=True)
class Scores:
    """The scores of n pairs (candidate and reference), in input order.

    Texts are cleaned before they are scored: comment marks are removed, letters become lower-case ASCII.

    Attributes:
        values: (n,) scores from -1 to 1, or from 0 to 1 with the similarity `inverse-euclidean`. Equal texts
            score 1.
        empty: Number of pairs in which at least one text is empty after cleaning.
        unreadable: Number of texts that are empty after cleaning, but were not empty before.
        truncated: Number of texts that are longer than the model's longest input.
        deduplicated: Number of texts that were not encoded because they are equal to an earlier text.
        signature: Text that names everything that can change a score: `key:value` pairs joined by `|`.
        calibration: The map from scores to percentiles and human ratings; None if there is none.
        same: (n,) probabilities that the two texts have the same meaning; None if the model cannot estimate
            them.
        warnings: What changes how the scores are read, such as the number of truncated texts.
    """

    values: NDArray[np.float64]
    empty: int
    unreadable: int
    truncated: int
    deduplicated: int
    signature: str
    calibration: ScoreScale | None = field(default=None, repr=False)  # a thousand numbers
    same: NDArray[np.float64] | None = None
    warnings: tuple[str, ...] = ()

    @property
    def mean(self) -> float:
        """Mean of the n scores; NaN if n is 0."""
        return float(self.values.mean()) if len(self.values) else float("nan")

    @property
    def percentiles(self) -> NDArray[np.float64]:
        """(n,) percentiles: for each pair, the percentage (0 to 100) of random pairs that score lower.

        A random pair has two different texts, chosen at random from a corpus. InputError without calibration.
        """
        return self._calibrated().percentile(self.values)

    @property
    def ratings(self) -> NDArray[np.float64]:
        """(n,) expected human ratings, predicted from the scores; InputError without calibration."""
        return self._calibrated().rating(self.values)

    @property
    def rating_intervals(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(n,) lower and (n,) upper bounds of 90% prediction intervals; InputError without calibration.

        About 90% of the human ratings of pairs with the same score lie within the interval.
        """
        return self._calibrated().interval(self.values)

    @property
    def changed(self) -> NDArray[np.bool_]:
        """(n,) bool, true for pairs whose texts are similar but probably differ in meaning.

        This is the case if the score is at least 0.4 and the probability of the same meaning is below 0.3.
        All values are false if the model cannot estimate this probability.
        """
        if self.same is None:
            return np.zeros(len(self.values), bool)
        return meaning_may_have_changed(self.values, self.same)

    def to_pandas(self, index: Any = None) -> pandas.Series:
        """Return the scores as a pandas Series named "score".

        Args:
            index: The index of the Series; for example, the index of the data frame with the texts.
        """
        import pandas

        return pandas.Series(self.values, index, name="score")

    def on(self, scale: str) -> NDArray[np.float64]:
        """Convert the n scores to a scale.

        Args:
            scale: `raw` for the scores themselves; `percentile` for the percentage of random pairs that score
                lower; `rating` for the expected human rating; or `same` for the probability that the two
                texts have the same meaning.

        Returns:
            (n,) values on this scale.

        Raises:
            InputError: The scale is unknown, or the model cannot compute values on this scale.
        """
        if scale not in SCALES:
            raise InputError(f"scale {scale!r}: expected one of {', '.join(SCALES)}")
        if scale == "same":
            if self.same is None:
                raise InputError(
                    "no meaning head: the model folder has none, or tokens are matched one by one"
                )
            return self.same
        return self.values if scale == "raw" else self.percentiles if scale == "percentile" else self.ratings

    def _calibrated(self) -> ScoreScale:
        if self.calibration is None:
            raise InputError("no calibration: the model folder has none for this pooling and similarity")
        return self.calibration


def concatenate(parts: Iterable[Scores], no_scores: Scores) -> Scores:
    """Join the scores of several chunks, in order; counts, such as that of truncated texts, are added up."""
    parts = [no_scores, *parts]
    counts = {name: sum(getattr(part, name) for part in parts) for name in COUNTS}
    same = None
    if no_scores.same is not None:
        same = np.concatenate([part.same for part in parts if part.same is not None])
    return replace(no_scores, values=np.concatenate([part.values for part in parts]), same=same, **counts)
