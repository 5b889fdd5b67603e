"""Score of the positive class: how strongly a classifier believes that an item is positive.

The score is the probability of the positive class; the confidence in the predicted class, or 1 minus this if
the negative class is predicted; or any other number, such as a logit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pandas import DataFrame

from simllm.array_types import Floats
from simllm.evaluation.classifiers.prediction_files import chances_of


def positive_scores(rows: DataFrame, positive: str, labels: Sequence[str]) -> tuple[Floats, bool]:
    """Return (n,) scores, NaN where a row has none, and whether all of them are probabilities.

    `rows` has no unparsed outputs.
    """
    confidence = rows["confidence"].to_numpy(float)
    values = np.where(rows["predicted"] == positive, confidence, 1 - confidence)
    chances = chances_of(rows, labels)
    # A row has at most one of these, so that the order does not matter.
    for other in (rows["probability"], chances[f"p:{positive}"] if chances is not None else None):
        if other is not None:
            values = np.where(np.isnan(values), other.to_numpy(float), values)
    missing = np.isnan(values)
    values[missing] = rows["score"].to_numpy(float)[missing]
    return values, not (missing & ~np.isnan(values)).any()
