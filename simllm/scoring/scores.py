"""What a metric answers."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simllm.errors import InputError
from simllm.model.score_scale import Calibration

if TYPE_CHECKING:
    import pandas

SCALES = ("raw", "percentile", "rating")
COUNTS = ("empty", "unreadable", "truncated", "deduplicated")


@dataclass(frozen=True)
class Scores:
    """The scores of n pairs, in input order."""

    values: NDArray[np.float64]  # (n,) 1 means the same; -1..1, inverse-euclidean 0..1
    empty: int  # pairs with a text of which cleaning leaves nothing
    unreadable: int  # texts, of both sides, of which it leaves nothing although there was something
    truncated: int  # texts, of both sides, longer than the model's longest input
    deduplicated: int  # texts, of both sides, that were not encoded again
    signature: str  # pins everything that decides on the values
    calibration: Calibration | None = field(default=None, repr=False)  # a thousand numbers

    @property
    def mean(self) -> float:
        """Mean of the values; NaN for no pairs."""
        return float(self.values.mean()) if len(self.values) else float("nan")

    @property
    def percentiles(self) -> NDArray[np.float64]:
        """(n,) how many of a hundred random pairs score lower."""
        return self._calibrated().percentile(self.values)

    @property
    def ratings(self) -> NDArray[np.float64]:
        """(n,) the ratings to expect of people."""
        return self._calibrated().rating(self.values)

    @property
    def rating_intervals(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(n,), (n,): between these two lie nine in ten ratings of pairs with such scores."""
        return self._calibrated().interval(self.values)

    def to_pandas(self, index: Any = None) -> pandas.Series:
        """The values as a pandas Series called "score", under the index of where the texts were."""
        import pandas

        return pandas.Series(self.values, index, name="score")

    def on(self, scale: str) -> NDArray[np.float64]:
        """(n,) the values on a scale of `SCALES`; raise InputError where the model lacks it."""
        if scale not in SCALES:
            raise InputError(f"scale {scale!r}: expected one of {', '.join(SCALES)}")
        return self.values if scale == "raw" else self.percentiles if scale == "percentile" else self.ratings

    def _calibrated(self) -> Calibration:
        if self.calibration is None:
            raise InputError("no calibration: the model folder has none for this pooling and similarity")
        return self.calibration


def joined(parts: Iterable[Scores], empty: Scores) -> Scores:
    """The scores of consecutive parts as one; `empty` is what no parts give."""
    parts = [empty, *parts]
    counts = {name: sum(getattr(part, name) for part in parts) for name in COUNTS}
    return replace(empty, values=np.concatenate([part.values for part in parts]), **counts)


def warn(texts: int, truncated: int, unreadable: int, long: str) -> None:
    """Say, once, how many of the texts were not read; `long` says what was done with long ones."""
    if truncated:
        warnings.warn(f"{truncated} of {texts} texts {long}", stacklevel=4)
    if unreadable:
        message = "of which cleaning leaves nothing (the model reads ASCII); scored 0 or, if the same, 1"
        warnings.warn(f"{unreadable} of {texts} texts {message}", stacklevel=4)
