"""Data leaks: items that are in two splits of the data, such as training data and test data."""

from __future__ import annotations

from pandas import DataFrame

from simllm.evaluation.classifiers.classifier_comparison import ITEM

MOST_NAMED = 20  # leaked items that the results of a study name


def find_leaks(rows: DataFrame) -> list[str]:
    """Return the items that a classifier has in two splits of one fold: ids, or A/17 in data set A."""
    # In different folds of a cross-validation, an item is in different splits on purpose.
    keys = ["classifier", "fold", *ITEM]
    counted = rows[rows["variant"] == ""].groupby(keys, sort=False)["split"].nunique()
    several = rows["data_set"].nunique() > 1
    leaked = dict.fromkeys(key[-2:] for key in counted[counted > 1].index)
    return [f"{data_set}/{item}" if several else str(item) for data_set, item in leaked]
