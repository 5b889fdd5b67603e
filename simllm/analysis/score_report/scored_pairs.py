"""Scored text pairs of one or several systems: the texts, their scores, and fields to group pairs by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simllm.analysis.score_report import pair_flags
from simllm.analysis.score_report.word_overlap import disagreement, word_overlap
from simllm.array_types import Floats
from simllm.metrics import registry
from simllm.model.percentiles_and_expected_ratings import ScoreScale


@dataclass(frozen=True)
class ScoredPairs:
    """Scored text pairs: n references, the candidates of one or several systems, and scores.

    Attributes:
        references: n references. If a candidate has several references, they are joined by " / ".
        candidates: The n candidates of each system, by its name. A single system has the name "".
        scores: The (n,) scores of each column.
        same: The (n,) probabilities of the same meaning of each column that has them.
        changed: (n,) bool for each column in `same`, true for a changed pair.
        truncated: Number of texts that are longer than the model's longest input.
        calibration: The map from scores to percentiles and human ratings; None if there is none.
        ids: n identifiers of the pairs; None if the user named no field with ids.
        groups: The n values of each field.
        changed_by: The changing words of each explained pair: `changed_by[column][i]`.
        long_texts: Indices of the pairs with a text that is longer than the model's longest input; empty if
            they were not searched for.
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
    changed_by: Mapping[str, Mapping[int, Sequence[str]]] = field(default_factory=dict)
    long_texts: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.references)

    @property
    def has_systems(self) -> bool:
        """Whether there are several systems; the columns are then systems, and otherwise metrics."""
        return len(self.candidates) > 1

    @cached_property
    def main(self) -> Floats:
        """(n,) main scores: those of the first metric, or the mean over several systems."""
        columns = list(self.scores.values())
        return np.mean(columns, axis=0) if self.has_systems else columns[0]

    @property
    def lower_is_better(self) -> bool:
        """Whether lower scores by the first metric are better, as for a metric of the size of an edit."""
        # Several systems are scored by simllm's learned metric, for which higher is better.
        return not self.has_systems and registry.lower_is_better(next(iter(self.scores)))

    @property
    def ranking(self) -> Floats:
        """(n,) main scores for ranking the pairs, with NaN replaced by the median."""
        known = self.main[~np.isnan(self.main)]
        return np.nan_to_num(self.main, nan=float(np.median(known)) if len(known) else 0.0)

    @property
    def texts(self) -> list[Sequence[str]]:
        """The texts as a list of columns: the n references, then the n candidates of each system."""
        return [self.references, *self.candidates.values()]

    @cached_property
    def overlap(self) -> Floats:
        """(n,) word overlaps (Jaccard indices) of candidate and reference; the mean over several systems."""
        return np.mean([word_overlap(own, self.references) for own in self.candidates.values()], axis=0)

    @cached_property
    def surprise(self) -> Floats:
        """(n,) disagreements of word overlap and score, from -1 to 1; see `disagreement`."""
        return disagreement(self.overlap, -self.ranking if self.lower_is_better else self.ranking)

    @cached_property
    def empty(self) -> NDArray[np.bool_]:
        """(n,) bool, true for a pair if one of its texts is empty after cleaning."""
        return pair_flags.flag_empty(self.texts)

    @cached_property
    def long(self) -> NDArray[np.bool_]:
        """(n,) bool, true for the pairs in `long_texts`."""
        return np.isin(np.arange(len(self)), self.long_texts)

    @cached_property
    def worst_good_score(self) -> float:
        """The threshold between good and bad scores; a score equal to the threshold is good."""
        # Only the learned metric has a calibration or probabilities of the same meaning.
        is_learned = self.calibration is not None or next(iter(self.scores)) in self.same
        return pair_flags.worst_good_score(self.ranking, is_learned)

    @cached_property
    def unrelated_below(self) -> float | None:
        """The score below which two texts may be unrelated; None without a calibration."""
        return None if self.calibration is None else pair_flags.unrelated_below(self.calibration)

    @cached_property
    def any_unrelated(self) -> NDArray[np.bool_]:
        """(n,) bool, true for a pair if one of its candidates scores below `unrelated_below`."""
        columns = list(self.scores.values()) if self.has_systems else [self.main]
        return pair_flags.flag_unrelated(columns, self.unrelated_below)

    @cached_property
    def any_changed(self) -> NDArray[np.bool_]:
        """(n,) bool, true for a pair that is changed in any column."""
        return pair_flags.flag_changed(list(self.changed.values()), len(self))
