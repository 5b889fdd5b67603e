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
    """n references, the candidates of one or several systems (such as summarizers), and scores.

    A score compares a candidate with its reference.

    Attributes:
        references: n references. Several references for one item are joined by " / ".
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
        """(n,) main scores, one for each reference: by the first metric, or the mean over all systems.

        With a single system (source of candidates), they are the candidates' scores by the first metric.
        With several systems, each reference has a candidate from each system. The main score is the mean of
        these candidates' scores.
        """
        columns = list(self.scores.values())
        return np.mean(columns, axis=0) if self.has_systems else columns[0]

    @property
    def lower_is_better(self) -> bool:
        """True if lower scores by the main (first) metric are better.

        An example is a metric that measures the size of an edit. The value is always false for a run that
        compares several systems (sources of candidates). Such a run is scored by simllm's learned metric
        only, for which higher is better.
        """
        return not self.has_systems and registry.lower_is_better(next(iter(self.scores)))

    @property
    def ranking(self) -> Floats:
        """(n,) scores for ranking the n text pairs of the report.

        These are the main scores (`main`), with each missing score (NaN) replaced by the median.
        """
        known = self.main[~np.isnan(self.main)]
        return np.nan_to_num(self.main, nan=float(np.median(known)) if len(known) else 0.0)

    @cached_property
    def overlap(self) -> Floats:
        """(n,) word overlaps (Jaccard indices) of candidate and reference, one for each reference.

        With several systems, each value is the mean over the candidates of all systems.
        """
        return np.mean([word_overlap(own, self.references) for own in self.candidates.values()], axis=0)

    @cached_property
    def surprise(self) -> Floats:
        """(n,) disagreements between word overlap and score, one for each text pair; from -1 to 1.

        A value near 1 means that the candidate and the reference share many words, but the score is bad. A
        value near -1 means that they share few words, but the score is good. The value is the pair's rank by
        word overlap minus its rank by score, divided by n. Ranks grow from the pair with the least overlap to
        the pair with the most, and from the worst score to the best.
        """
        return _rank(self.overlap) - _rank(-self.ranking if self.lower_is_better else self.ranking)

    @cached_property
    def empty(self) -> NDArray[np.bool_]:
        """(n,) bool, true for a pair if the reference or a candidate is empty after text cleaning.

        Cleaning removes comment marks, for example.
        """
        columns = [self.references, *self.candidates.values()]
        return _any([[not clean(text) for text in column] for column in columns])

    @cached_property
    def long(self) -> NDArray[np.bool_]:
        """(n,) bool, true if a text of the pair is known to be longer than the model's longest input."""
        return np.isin(np.arange(len(self)), self.long_texts)

    @cached_property
    def worst_good_score(self) -> float:
        """The threshold between good and bad scores; a score equal to the threshold is good.

        The report uses it for two lists: pairs that share many words but have a bad score, and pairs that
        share few words but have a good score. For simllm's learned metric, the threshold is a constant. For
        other metrics, it is the median score.
        """
        is_learned = self.calibration is not None or next(iter(self.scores)) in self.same
        return SIMILAR if is_learned else float(np.median(self.ranking))

    @cached_property
    def unrelated_below(self) -> float | None:
        """The score below which two texts may be unrelated: 95% of random pairs of texts score lower.

        The scores of random pairs come from `calibration`. Without calibration, the value is None.
        """
        if self.calibration is None:
            return None
        scores = self.calibration.random  # at evenly spaced percentiles
        return float(np.interp(95, np.linspace(0, 100, len(scores)), scores))

    @cached_property
    def any_unrelated(self) -> NDArray[np.bool_]:
        """(n,) bool, true for a pair if a candidate may be unrelated to its reference.

        Such a candidate scores below `unrelated_below`. This is the score below which 95% of random text
        pairs lie. With several systems, one such candidate is enough. All values are false if
        `unrelated_below` is None.
        """
        bar = -np.inf if self.unrelated_below is None else self.unrelated_below
        return _any([values < bar for values in (self.scores.values() if self.has_systems else [self.main])])

    @cached_property
    def any_changed(self) -> NDArray[np.bool_]:
        """(n,) bool, true if a candidate is similar to its reference but probably differs in meaning.

        There is one value for each of the n references. With several systems, one such candidate is enough.
        The meaning head decides whether the meaning differs: it is the part of the model that predicts
        whether two texts have the same meaning.
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
