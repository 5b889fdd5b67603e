"""Flags of text pairs in the score report: empty, too long, perhaps unrelated, or different in meaning.

The module also computes two thresholds for the report: one separates good scores from bad scores, the other
separates the scores of related texts from those of texts that may be unrelated.
"""

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
    """Flag the rows of texts in which a text is empty after text cleaning.

    A row is a reference and its candidates, one from each system (source of candidates). Text cleaning
    removes comment marks, for example.

    Args:
        texts: Columns of n texts: the references, and the candidates of each system. Row i consists of text i
            of each column.

    Returns:
        (n,) bool, true for a row if one of its texts is empty.
    """
    return _any([[not clean(text) for text in column] for column in texts])


def find_long_texts(metrics: Mapping[str, SimLLM], texts: Sequence[Sequence[str]]) -> list[int]:
    """Find the rows of texts in which a text is longer than the longest input of a metric's model.

    A row is a reference and its candidates, one from each system (source of candidates).

    Args:
        metrics: A dict from the name of each column of scores to the metric that computed the column.
        texts: Columns of n texts: the references, and the candidates of each system. Row i consists of text i
            of each column.

    Returns:
        The indices of the rows, increasing.
    """
    found: set[int] = set()
    for metric in {id(metric): metric for metric in metrics.values()}.values():
        for column in texts:
            for start in range(0, len(column), _CHUNK):
                long = metric.tokenize(list(column[start : start + _CHUNK])).long
                found.update(start + i for i in long)
    return sorted(found)


def worst_good_score(scores: Floats, is_learned: bool) -> float:
    """Return the threshold between good and bad scores; a score equal to the threshold is good.

    The report uses the threshold for two lists: pairs that share many words but have a bad score, and pairs
    that share few words but have a good score.

    Args:
        scores: (n,) scores, without NaN.
        is_learned: Whether simllm's learned metric computed the scores. For the learned metric, the threshold
            is a constant. For other metrics, it is the median score.
    """
    return SIMILAR if is_learned else float(np.median(scores))


def unrelated_below(calibration: ScoreScale) -> float:
    """Return the score below which two texts may be unrelated: 95% of random pairs of texts score lower.

    Args:
        calibration: The map from scores to percentiles, which holds the scores of random pairs.
    """
    scores = calibration.random  # at evenly spaced percentiles
    return float(np.interp(95, np.linspace(0, 100, len(scores)), scores))


def flag_unrelated(scores: Sequence[Floats], threshold: float | None) -> NDArray[np.bool_]:
    """Flag the pairs in which a candidate may be unrelated to its reference.

    Args:
        scores: One or several columns of n scores, one score of each pair in each column.
        threshold: The score below which texts may be unrelated; None if it is not known.

    Returns:
        (n,) bool, true for a pair if any of its scores is below the threshold; all false without a threshold.
    """
    bar = -np.inf if threshold is None else threshold
    return _any([values < bar for values in scores])


def flag_changed(columns: Sequence[NDArray[np.bool_]], n: int) -> NDArray[np.bool_]:
    """Combine the flags of several metrics or systems: flag a pair if at least one of them flags it.

    A flag means that a candidate is similar to its reference but probably differs in meaning. The meaning
    head, a part of the model, predicts whether two texts have the same meaning.

    Args:
        columns: Columns of n flags, one column for each metric or system; may be empty.
        n: The number of pairs.

    Returns:
        (n,) bool, true for a pair that is flagged in at least one column.
    """
    return _any([np.zeros(n, bool), *columns])


def _any(columns: Sequence[ArrayLike]) -> NDArray[np.bool_]:
    """Combine several columns of n truth values: return (n,) bool, true where any column is true."""
    flags: NDArray[np.bool_] = np.logical_or.reduce(np.array(columns))
    return flags
