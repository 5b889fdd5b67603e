"""Data leaks: items that are in two splits of the data, such as training data and test data."""

from __future__ import annotations

from pandas import DataFrame

from simllm.evaluation.classifiers.classifier_comparison import ITEM

MOST_NAMED = 20  # leaked items that the results of a study name


def find_leaks(rows: DataFrame) -> list[str]:
    """Return the names of leaked items: items that are in two splits, such as training and test data.

    An item is leaked if a classifier has predictions for it in two splits of the same fold. (In different
    folds of a cross-validation, an item is in different splits on purpose.) Predictions for rewritten
    variants of items are ignored. An item's name is its id. If there are several data sets, the name of the
    data set stands before the id, as in `A/17`.

    Args:
        rows: The predictions of all classifiers: a table with a row for each prediction.
    """
    keys = ["classifier", "fold", *ITEM]
    counted = rows[rows["variant"] == ""].groupby(keys, sort=False)["split"].nunique()
    several = rows["data_set"].nunique() > 1
    leaked = dict.fromkeys(key[-2:] for key in counted[counted > 1].index)
    return [f"{data_set}/{item}" if several else str(item) for data_set, item in leaked]
