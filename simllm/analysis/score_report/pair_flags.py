"""Flags of pairs in the score report (empty, too long, perhaps unrelated, changed), and two thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simllm.array_types import Floats
from simllm.model.percentiles_and_expected_ratings import ScoreScale
from simllm.scoring.changed_meaning import SIMILAR
from simllm.text_cleaning import clean

if TYPE_CHECKING:
    from simllm.metric import SimLLM

_CHUNK = 10_000  # texts that are tokenized at once


def flag_empty(texts: Sequence[Sequence[str]]) -> NDArray[np.bool_]:
    """Return (n,) bool, true for a pair if one of its texts is empty after cleaning.

    `texts` are columns of n texts: the references, and the candidates of each system.
    """
    return _any([[not clean(text) for text in column] for column in texts])


def find_long_texts(metrics: Mapping[str, SimLLM], texts: Sequence[Sequence[str]]) -> list[int]:
    """Find the indices of pairs with a text that is longer than the longest input of a metric's model.

    `texts` are columns of n texts: the references, and the candidates of each system.
    """
    found: set[int] = set()
    # With several systems, all columns have the same metric, which needs to read the texts only once.
    for metric in {id(metric): metric for metric in metrics.values()}.values():
        for column in texts:
            for start in range(0, len(column), _CHUNK):
                long = metric.tokenize(list(column[start : start + _CHUNK])).long
                found.update(start + i for i in long)
    return sorted(found)


def worst_good_score(scores: Floats, is_learned: bool) -> float:
    """Return the threshold of (n,) scores without NaN from which scores are good.

    The report uses the threshold to list pairs that share many words but have a bad score, and the reverse.
    """
    # Other metrics have scales of their own, on which no score is known to be good.
    return SIMILAR if is_learned else float(np.median(scores))


def unrelated_below(calibration: ScoreScale) -> float:
    """Return the score below which two texts may be unrelated: 95% of random pairs of texts score lower."""
    scores = calibration.random  # at evenly spaced percentiles
    return float(np.interp(95, np.linspace(0, 100, len(scores)), scores))


def flag_unrelated(scores: Sequence[Floats], threshold: float | None) -> NDArray[np.bool_]:
    """Return (n,) bool, true for a pair with a score below the threshold (if any) in a column."""
    bar = -np.inf if threshold is None else threshold
    return _any([values < bar for values in scores])


def flag_changed(columns: Sequence[NDArray[np.bool_]], n: int) -> NDArray[np.bool_]:
    """Return (n,) bool, true for a pair that is flagged in any column of n flags; there may be no columns."""
    return _any([np.zeros(n, bool), *columns])


def _any(columns: Sequence[ArrayLike]) -> NDArray[np.bool_]:
    """Return (n,) bool, true where any of several columns of n values is true."""
    flags: NDArray[np.bool_] = np.logical_or.reduce(np.array(columns))
    return flags
