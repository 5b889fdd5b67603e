"""The scores that the learned metric returns."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simllm.errors import InputError
from simllm.model.score_scale import ScoreScale

if TYPE_CHECKING:
    import pandas

SCALES = ("raw", "percentile", "rating", "same")
_SIMILAR, _SAME = 0.5, 0.5  # lowest score of similar texts; lowest probability of the same meaning
COUNTS = ("empty", "unreadable", "truncated", "deduplicated")


@dataclass(frozen=True)
class Scores:
    """The scores of n pairs, in input order.

    Attributes:
        values: (n,) scores; 1 means equal. From -1 to 1, with inverse-euclidean from 0 to 1.
        empty: Number of pairs in which a text is empty after cleaning.
        unreadable: Number of texts that are empty after cleaning, but were not before.
        truncated: Number of texts that are longer than the model's longest input.
        deduplicated: Number of texts that repeat another one and were not encoded again.
        signature: Everything that can change the values, as `key:value` pairs joined by `|`.
        calibration: The map from scores to percentiles and ratings; None if there is none.
        same: (n,) probabilities that the texts have the same meaning; None without a meaning head.
    """

    values: NDArray[np.float64]
    empty: int
    unreadable: int
    truncated: int
    deduplicated: int
    signature: str
    calibration: ScoreScale | None = field(default=None, repr=False)  # a thousand numbers
    same: NDArray[np.float64] | None = None

    @property
    def mean(self) -> float:
        """Mean of the values; NaN for no pairs."""
        return float(self.values.mean()) if len(self.values) else float("nan")

    @property
    def percentiles(self) -> NDArray[np.float64]:
        """(n,) percentages of random pairs that score lower; InputError without calibration."""
        return self._calibrated().percentile(self.values)

    @property
    def ratings(self) -> NDArray[np.float64]:
        """(n,) ratings that people are expected to give; InputError without calibration."""
        return self._calibrated().rating(self.values)

    @property
    def rating_intervals(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(n,) lower and (n,) upper bounds of the 90% interval of ratings; InputError without calibration."""
        return self._calibrated().interval(self.values)

    @property
    def changed(self) -> NDArray[np.bool_]:
        """(n,) bool, true for similar texts that probably differ in meaning; false without a meaning head."""
        if self.same is None:
            return np.zeros(len(self.values), bool)
        return (self.values >= _SIMILAR) & (self.same < _SAME)

    def to_pandas(self, index: Any = None) -> pandas.Series:
        """Return the values as a pandas Series named "score".

        Args:
            index: The index of the Series, such as that of the data frame with the texts.
        """
        import pandas

        return pandas.Series(self.values, index, name="score")

    def on(self, scale: str) -> NDArray[np.float64]:
        """Return the (n,) values on a scale.

        Args:
            scale: `raw`; `percentile` among random pairs; `rating` that people are expected to give; or
                `same`, the probability that the two texts have the same meaning.

        Raises:
            InputError: The scale is unknown, or the model has no calibration or no head for it.
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
    """Concatenate the scores of consecutive chunks.

    Args:
        parts: The scores of each chunk, in input order.
        no_scores: The scores of zero pairs; the result has their signature and calibration.
    """
    parts = [no_scores, *parts]
    counts = {name: sum(getattr(part, name) for part in parts) for name in COUNTS}
    same = None
    if no_scores.same is not None:
        same = np.concatenate([part.same for part in parts if part.same is not None])
    return replace(no_scores, values=np.concatenate([part.values for part in parts]), same=same, **counts)


def issue_warnings(texts: int, truncated: int, unreadable: int, long: str) -> None:
    """Warn about the truncated and the unreadable of n texts; `long` says how long texts were treated."""
    if truncated:
        warnings.warn(f"{truncated} of {texts} texts {long}", stacklevel=4)
    if unreadable:
        message = "are empty after cleaning (the model reads ASCII); they score 0, or 1 against an equal text"
        warnings.warn(f"{unreadable} of {texts} texts {message}", stacklevel=4)
