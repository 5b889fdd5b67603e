"""Scored pairs: the texts, the scores of one system or of several, and fields to group them by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simllm.metrics import registry
from simllm.metrics.protocol import Example, Floats
from simllm.model.score_scale import ScoreScale
from simllm.text_cleaning import clean


@dataclass(frozen=True)
class ScoredRun:
    """n scored pairs of one system (source of candidates), or of several systems with the same references.

    Attributes:
        references: n references. With several references for an item, they are joined by " / ".
        candidates: For each system's name, its n candidates. A single system has the name "".
        scores: For each column's name, (n,) scores. Of a single system, the columns are metrics, and the
            first metric is the main one. Of several systems, each column is the score of one system.
        same: For each column that has them, the (n,) probabilities that the two texts have the same meaning.
        changed: For each of these columns, (n,) bool: similar texts that probably differ in meaning.
        truncated: Number of texts that are longer than the model's longest input.
        signature: Text that names everything that can change a score.
        calibration: The map from scores to percentiles and human ratings; None if there is none.
        ids: n identifiers that the user chose; None without them.
        groups: For each field's name, its n values.
    """

    references: Sequence[str]
    candidates: Mapping[str, Sequence[str]]
    scores: Mapping[str, Floats]
    same: Mapping[str, Floats] = field(default_factory=dict)
    changed: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    truncated: int = 0
    signature: str = ""
    calibration: ScoreScale | None = None
    ids: Sequence[Any] | None = None
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.references)

    @property
    def has_systems(self) -> bool:
        """True if the columns are systems, and not metrics."""
        return len(self.candidates) > 1

    @cached_property
    def main(self) -> Floats:
        """(n,) main scores: those of the first metric, or the means over all systems."""
        columns = list(self.scores.values())
        return np.mean(columns, axis=0) if self.has_systems else columns[0]

    @property
    def ranking(self) -> Floats:
        """(n,) main scores, in which the median replaces NaN: pairs without a score rank in the middle."""
        known = self.main[~np.isnan(self.main)]
        return np.nan_to_num(self.main, nan=float(np.median(known)) if len(known) else 0.0)

    @cached_property
    def overlap(self) -> Floats:
        """(n,) shares of common words (Jaccard index); with several systems, the mean over them."""
        jaccard = registry.load("jaccard")
        values = [
            jaccard.score([Example(*texts) for texts in zip(own, self.references, strict=True)]).values
            for own in self.candidates.values()
        ]
        return np.mean(values, axis=0)

    @cached_property
    def surprise(self) -> Floats:
        """(n,) rank of the word overlap minus rank of the score, both as shares of all pairs.

        Near 1: many common words, but a low score. Near -1: few common words, but a high score.
        """
        return _rank(self.overlap) - _rank(self.ranking)

    @cached_property
    def empty(self) -> NDArray[np.bool_]:
        """(n,) bool, true if the reference or a candidate has no words after cleaning."""
        columns = [self.references, *self.candidates.values()]
        return _any([[not clean(text) for text in column] for column in columns])

    @cached_property
    def any_changed(self) -> NDArray[np.bool_]:
        """(n,) bool, true if the meaning of a candidate may have changed."""
        return _any([np.zeros(len(self), bool), *self.changed.values()])


def _any(columns: Sequence[ArrayLike]) -> NDArray[np.bool_]:
    """Return (n,) bool, true where any of several columns of n truth values is true."""
    flags: NDArray[np.bool_] = np.logical_or.reduce(np.array(columns))
    return flags


def _rank(values: Floats) -> Floats:
    """Return the ranks of n values as shares of n; equal values get their mean rank."""
    from scipy.stats import rankdata

    shares: Floats = rankdata(values) / len(values)
    return shares
