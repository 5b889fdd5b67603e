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

    A system is a source of candidates, such as a summarizer. A score compares a candidate with its reference.
    Below, "pair i" means reference i and its candidates, one from each system.

    Attributes:
        references: n references. If a candidate has several references, they are joined by " / ".
        candidates: A dict from each system's name to its n candidates. A single system has the name "".
        scores: Columns of scores: a dict from each column's name to (n,) scores. For a single system, each
            column is a metric, and the first metric is the main one. For several systems, each column is a
            system.
        same: A dict from a column's name to the (n,) probabilities that the two texts have the same meaning.
            Columns of metrics that cannot estimate the probability are left out.
        changed: A dict with the same keys as `same`. Each value is (n,) bool, true if the candidate is
            similar to its reference but probably differs from it in meaning.
        truncated: Number of texts that are longer than the model's longest input.
        signature: Text that names everything that can change a score.
        calibration: The map from scores to percentiles and human ratings; None if there is none.
        ids: n identifiers of the pairs, from the user's file; None if the user named no field with ids.
        groups: A dict from the name of each field, such as "language", to its n values. The report groups
            pairs by these values.
        changed_by: `changed_by[column][i]` holds the words that make the candidate of pair i differ in
            meaning from its reference. `column` is the name of a column of scores. Only the few pairs that
            were searched for such words have an entry.
        long_texts: Indices of the pairs with a text that is longer than the model's longest input; empty if
            there are none, or if they were not searched for.
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
        """True if there are several systems (sources of candidates), false if there is one.

        The columns of `scores` are systems if this is true, and metrics if it is false.
        """
        return len(self.candidates) > 1

    @cached_property
    def main(self) -> Floats:
        """(n,) scores: a single score, called the main score, for each of the n references.

        With one system (source of candidates), the main score is the candidate's score by the first metric.
        With several systems, it is the mean score of the systems' candidates by simllm's learned metric.

        The report uses main scores in some of its sentences, and for the mean scores of groups of pairs.
        """
        columns = list(self.scores.values())
        return np.mean(columns, axis=0) if self.has_systems else columns[0]

    @property
    def lower_is_better(self) -> bool:
        """True if lower scores by the first metric are better, as for a metric of the size of an edit.

        If there are several systems (sources of candidates), only simllm's learned metric scores the pairs.
        Higher scores by the learned metric are better, so the value is false.
        """
        return not self.has_systems and registry.lower_is_better(next(iter(self.scores)))

    @property
    def ranking(self) -> Floats:
        """(n,) scores for ranking the n text pairs of the report.

        These are the main scores (`main`), with each missing score (NaN) replaced by the median.
        """
        known = self.main[~np.isnan(self.main)]
        return np.nan_to_num(self.main, nan=float(np.median(known)) if len(known) else 0.0)

    @property
    def texts(self) -> list[Sequence[str]]:
        """The texts as a list of columns: the n references, then the n candidates of each system."""
        return [self.references, *self.candidates.values()]

    @cached_property
    def overlap(self) -> Floats:
        """(n,) word overlaps (Jaccard indices) of candidate and reference, one for each reference.

        With several systems, each value is the mean over the candidates of all systems.
        """
        return np.mean([word_overlap(own, self.references) for own in self.candidates.values()], axis=0)

    @cached_property
    def surprise(self) -> Floats:
        """(n,) disagreements between word overlap and score, from -1 to 1.

        A value near 1 means that the candidate and the reference share many words, but the score is bad. A
        value near -1 means that they share few words, but the score is good.
        """
        return disagreement(self.overlap, -self.ranking if self.lower_is_better else self.ranking)

    @cached_property
    def empty(self) -> NDArray[np.bool_]:
        """(n,) bool, true for a reference if it or one of its candidates is empty after text cleaning."""
        return pair_flags.flag_empty(self.texts)

    @cached_property
    def long(self) -> NDArray[np.bool_]:
        """(n,) bool, true for a reference if it or a candidate is longer than the model's longest input.

        The indices of these references are in `long_texts`. If long texts were not searched for, this list is
        empty, and all values are false.
        """
        return np.isin(np.arange(len(self)), self.long_texts)

    @cached_property
    def worst_good_score(self) -> float:
        """The threshold between good and bad scores; a score equal to the threshold is good."""
        is_learned = self.calibration is not None or next(iter(self.scores)) in self.same
        return pair_flags.worst_good_score(self.ranking, is_learned)

    @cached_property
    def unrelated_below(self) -> float | None:
        """The score below which two texts may be unrelated: 95% of random text pairs score lower.

        None if `calibration`, which holds the scores of random pairs, is None.
        """
        return None if self.calibration is None else pair_flags.unrelated_below(self.calibration)

    @cached_property
    def any_unrelated(self) -> NDArray[np.bool_]:
        """(n,) bool, true for a reference if one of its candidates may be unrelated to it.

        A reference has a candidate from each system (source of candidates). A candidate may be unrelated if
        its score is below the threshold `unrelated_below`. If the threshold is None, all values are false.
        """
        columns = list(self.scores.values()) if self.has_systems else [self.main]
        return pair_flags.flag_unrelated(columns, self.unrelated_below)

    @cached_property
    def any_changed(self) -> NDArray[np.bool_]:
        """(n,) bool, true for a reference if a candidate is similar to it but probably differs in meaning.

        A reference has a candidate from each system (source of candidates). One such candidate is enough.
        `changed` tells which candidates are similar but probably differ in meaning.
        """
        return pair_flags.flag_changed(list(self.changed.values()), len(self))
