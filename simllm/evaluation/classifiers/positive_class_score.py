"""Score of the positive class: how strongly a classifier believes that an item is positive.

The score depends on the number that the classifier gives with a prediction:

- A probability of the positive class is the score.
- A confidence in the predicted class is the score if this class is the positive one. Otherwise, the score is
  1 minus the confidence.
- Any other number, such as a logit, is the score.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pandas import DataFrame

from simllm.array_types import Floats
from simllm.evaluation.classifiers.prediction_files import chances_of


def positive_scores(rows: DataFrame, positive: str, labels: Sequence[str]) -> tuple[Floats, bool]:
    """Return a score for each prediction; a high score means that the classifier expects a positive item.

    Args:
        rows: n predictions (rows of `Predictions.rows`), without outputs that could not be parsed.
        positive: The positive class.
        labels: The classes.

    Returns:
        Two values. The first has (n,) probabilities or other scores, NaN for a prediction that has neither.
        The second is True if all of these numbers are probabilities.
    """
    confidence = rows["confidence"].to_numpy(float)
    values = np.where(rows["predicted"] == positive, confidence, 1 - confidence)
    chances = chances_of(rows, labels)
    for other in (rows["probability"], chances[f"p:{positive}"] if chances is not None else None):
        if other is not None:
            values = np.where(np.isnan(values), other.to_numpy(float), values)
    missing = np.isnan(values)
    values[missing] = rows["score"].to_numpy(float)[missing]
    return values, not (missing & ~np.isnan(values)).any()
