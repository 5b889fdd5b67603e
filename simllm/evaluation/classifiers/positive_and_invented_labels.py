"""Preparation of classifiers' predictions: remove invented labels, and choose the positive class."""

from __future__ import annotations

import numpy as np
from pandas import DataFrame

from simllm.errors import InputError
from simllm.evaluation.classifiers.label_spelling import find_class, label_key
from simllm.evaluation.classifiers.prediction_files import INVENTED


def remove_invented_labels(rows: DataFrame) -> tuple[DataFrame, dict[str, int]]:
    """Count the invented labels, and mark them in a new column `INVENTED`.

    With exactly two true classes, they become unparsed outputs, so that two classes remain.
    """
    classes = set(rows["gold"])
    # If all items are "bug", "feature" may be a real class without items, so no label is invented then.
    is_invented = rows["predicted"].notna() & ~rows["predicted"].isin(classes) & (len(classes) > 1)
    found = {str(label): int(n) for label, n in rows.loc[is_invented, "predicted"].value_counts().items()}
    rows = rows.assign(**{INVENTED: is_invented})
    if len(classes) == 2:
        rows["predicted"] = rows["predicted"].where(~is_invented, None)
    return rows, found


def choose_classes(rows: DataFrame, positive: str | None) -> tuple[DataFrame, list[str]]:
    """List the true and predicted classes, and merge all negative ones into one, such as "not bug".

    `positive` may have any spelling. If it is None, 1 is positive in 0 and 1; none is positive in three or
    more classes; otherwise this is an `InputError`.
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
