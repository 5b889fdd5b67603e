"""Scored text pairs of one or several systems: the texts, their scores, and fields to group pairs by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simllm.analysis.run_report.word_overlap import word_overlap
from simllm.metrics import registry
from simllm.metrics.protocol import Floats
from simllm.model.score_scale import ScoreScale
from simllm.scoring.scores import SIMILAR
from simllm.text_cleaning import clean


@dataclass(frozen=True)
class ScoredRun:
    """n references with the candidates of one or several systems (sources of candidates), and their scores.

    Attributes:
        references: n references. Several references for one item are joined by " / ".
        candidates: A dict from each system's name to its n candidates. A single system has the name "".
        scores: Columns of scores: a dict from each column's name to (n,) scores. For a single system, each
            column is a metric, and the first metric is the main one. For several systems, each column is a
            system.
        same: A dict from a column's name to the (n,) probabilities that the two texts have the same meaning.
            It has only the columns of metrics that can estimate the probability.
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
        long_texts: Indices of the pairs with a text that is longer than the model's longest input, if known.
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
        """True if there are several systems. The columns of `scores` are then systems, otherwise metrics."""
        return len(self.candidates) > 1

    @cached_property
    def main(self) -> Floats:
        """(n,) main score of each item: by the first metric, or the mean over several systems."""
        columns = list(self.scores.values())
        return np.mean(columns, axis=0) if self.has_systems else columns[0]

    @property
    def lower_is_better(self) -> bool:
        """True if lower scores of the main metric are better, as for the size of an edit.

        Always false for several systems.
        """
        return not self.has_systems and registry.lower_is_better(next(iter(self.scores)))

    @property
    def ranking(self) -> Floats:
        """(n,) main scores, by which pairs are sorted. A missing score (NaN) is replaced by the median."""
        known = self.main[~np.isnan(self.main)]
        return np.nan_to_num(self.main, nan=float(np.median(known)) if len(known) else 0.0)

    @cached_property
    def overlap(self) -> Floats:
        """(n,) word overlap of candidate and reference (Jaccard index), or its mean over several systems."""
        return np.mean([word_overlap(own, self.references) for own in self.candidates.values()], axis=0)

    @cached_property
    def surprise(self) -> Floats:
        """(n,) differences: rank by word overlap minus rank by score, both divided by n.

        The rank is higher for a larger word overlap, and for a better score. A value near 1 means that the
        candidate and the reference share many words, but the score is bad. A value near -1 means that they
        share few words, but the score is good.
        """
        return _rank(self.overlap) - _rank(-self.ranking if self.lower_is_better else self.ranking)

    @cached_property
    def empty(self) -> NDArray[np.bool_]:
        """(n,) bool, true if the reference or a candidate has no words after cleaning."""
        columns = [self.references, *self.candidates.values()]
        return _any([[not clean(text) for text in column] for column in columns])

    @cached_property
    def long(self) -> NDArray[np.bool_]:
        """(n,) bool, true if a text of the pair is known to be longer than the model's longest input."""
        return np.isin(np.arange(len(self)), self.long_texts)

    @cached_property
    def worst_good_score(self) -> float:
        """The lowest good score (or the highest, if lower scores are better), for the orders of the page.

        The learned metric has a fixed bar for similar texts. Among other metrics, scores better than the
        median are good.
        """
        is_learned = self.calibration is not None or next(iter(self.scores)) in self.same
        return SIMILAR if is_learned else float(np.median(self.ranking))

    @cached_property
    def unrelated_below(self) -> float | None:
        """The score below which two texts may be unrelated: 95% of random pairs of texts score lower.

        None if there is no calibration, which holds the scores of random pairs.
        """
        if self.calibration is None:
            return None
        scores = self.calibration.random  # at evenly spaced percentiles
        return float(np.interp(95, np.linspace(0, 100, len(scores)), scores))

    @cached_property
    def any_unrelated(self) -> NDArray[np.bool_]:
        """(n,) bool, true if a candidate scores below `unrelated_below`, so that it may be unrelated.

        95% of random pairs of texts score below this limit. With several systems, one such candidate is
        enough. All values are false if there is no limit.
        """
        bar = -np.inf if self.unrelated_below is None else self.unrelated_below
        return _any([values < bar for values in (self.scores.values() if self.has_systems else [self.main])])

    @cached_property
    def any_changed(self) -> NDArray[np.bool_]:
        """(n,) bool, true if a candidate is similar to its reference but probably differs in meaning.

        With several systems, one such candidate is enough.
        """
        return _any([np.zeros(len(self), bool), *self.changed.values()])


def _any(columns: Sequence[ArrayLike]) -> NDArray[np.bool_]:
    """Combine several columns of n truth values: return (n,) bool, true where any column is true."""
    flags: NDArray[np.bool_] = np.logical_or.reduce(np.array(columns))
    return flags


def _rank(values: Floats) -> Floats:
    """Return the (n,) ranks of n values, divided by n; equal values get their mean rank."""
    from scipy.stats import rankdata

    shares: Floats = rankdata(values) / len(values)
    return shares
