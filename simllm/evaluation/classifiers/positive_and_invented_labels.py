"""Preparation of classifiers' predictions: remove invented labels, and choose the positive class.

An invented label is a predicted label that is not the true class of any item. If one class is positive, all
other classes are merged into one negative class.
"""

from __future__ import annotations

import numpy as np
from pandas import DataFrame

from simllm.errors import InputError
from simllm.evaluation.classifiers.label_spelling import find_class, label_key
from simllm.evaluation.classifiers.prediction_files import INVENTED


def remove_invented_labels(rows: DataFrame) -> tuple[DataFrame, dict[str, int]]:
    """Count the predicted labels that are not the true class of any item, and remove them in some cases.

    These labels are called invented. There are three cases:

    - The items have exactly two true classes. Invented labels are counted and removed, so that two classes
      remain.
    - The items have more true classes. Invented labels are only counted.
    - All items have the same true class. No label counts as invented. For example, if all items are "bug",
      the label "feature" may be a real class without items.

    Args:
        rows: The predictions: a table with a row for each prediction.

    Returns:
        Two values. The first is the table with a new column `INVENTED`, which marks these labels. Where an
        invented label was removed, the table has None, as for an output that could not be parsed. The second
        is a dict from each invented label to the number of predictions with this label.
    """
    classes = set(rows["gold"])
    is_invented = rows["predicted"].notna() & ~rows["predicted"].isin(classes) & (len(classes) > 1)
    found = {str(label): int(n) for label, n in rows.loc[is_invented, "predicted"].value_counts().items()}
    rows = rows.assign(**{INVENTED: is_invented})
    if len(classes) == 2:
        rows["predicted"] = rows["predicted"].where(~is_invented, None)
    return rows, found


def choose_classes(rows: DataFrame, positive: str | None) -> tuple[DataFrame, list[str]]:
    """List the classes in the predictions, and merge all negative classes into one.

    The classes are all true classes and all predicted classes. If one class is positive, such as "bug", all
    other classes are negative. If no class is positive, nothing is merged.

    Args:
        rows: The predictions: a table with a row for each prediction.
        positive: The positive class, in any spelling. None: if the classes are 0 and 1, 1 is positive. If
            there are three or more classes, no class is positive.

    Returns:
        Two values. The first is the table. If there is a positive class, and not exactly one other class,
        the others are merged into a class with a name such as "not bug". The column `confidence` is then NaN,
        because a confidence in a single class says little about the merged class. The second value is the
        list of classes. If there is a positive class, the list has two classes, and the positive class is
        the first.

    Raises:
        InputError: The class `positive` does not occur. Or `positive` is None, but must be given: there are
            fewer than three classes, other than the pair "0" and "1".
    """
    classes = sorted({*rows["gold"].unique(), *rows["predicted"].dropna().unique()})
    if positive is None and {label_key(label) for label in classes} == {0, 1}:
        positive = "1"
    if positive is not None:
        positive = find_class(positive, classes)
    if positive is None:
        if len(classes) < 3:
            raise InputError(f"the classes are {', '.join(classes)}; name the positive one by --positive")
        return rows, classes
    if positive not in classes:
        raise InputError(f"no row has the positive class {positive}; the classes are {', '.join(classes)}")
    others = [label for label in classes if label != positive]
    if len(others) == 1:
        return rows, [positive, others[0]]
    rest = f"not {positive}"
    # Confidence in another class than the positive one does not tell the probability of the positive one.
    return rows.assign(
        confidence=np.nan,
        gold=rows["gold"].where(rows["gold"] == positive, rest),
        predicted=rows["predicted"].where(
            rows["predicted"].isin([positive]) | rows["predicted"].isna(), rest
        ),
    ), [positive, rest]
