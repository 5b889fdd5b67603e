"""Labels of classifiers: their spelling, invented labels, and the classes of a study.

`Yes`, `yes` and `"YES."` are one label, and so are `0` and `0.0`: models, pandas and spreadsheets change the
case, the punctuation around a label, and the form of numbers. Labels that are equal but for this are one
label, spelled as in the true classes. True classes of one file that differ only so stay apart, and only an
exactly equal prediction counts for them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
from pandas import DataFrame

from simllm.errors import InputError, OptionError

_NUMBER = re.compile(r"[+-]?(\d++\.?\d*+|\.\d++)(e[+-]?\d{1,3})?", re.ASCII | re.IGNORECASE)
# Punctuation, quotation marks and emphasis; not + - # / % and the like, which tell C++ from C.
_AROUND = " \t\n\r.,;:!?'\"`*_()[]{}<>\u00b4\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb"
MISSING = frozenset(("nan", "null", "none", "n/a", "na", "<na>", "#n/a"))  # written for a missing value
OF_CLASS = "p:"  # prefix of a column with the probability of a class
INVENTED = "(invented)"  # the column that tells whether a predicted label is no item's true class


@dataclass(frozen=True)
class Spelling:
    """The changes to the spelling of a study's labels.

    Attributes:
        respelled: For each replaced label, the label that replaced it, and how often, as true or predicted.
        apart: Groups of true classes that differ only in their spelling and stay apart.
        classes: The true classes.
        missing: How often each text was predicted that stands for a missing value, such as "NaN"; such
            outputs count as unparsed.
    """

    respelled: dict[str, tuple[str, int]] = field(default_factory=dict)
    apart: list[list[str]] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)


def label_key(label: str) -> str | Decimal:
    """Return a key, equal for labels that differ only in case, outer punctuation or form of a number."""
    bare = label.strip(_AROUND)
    # First with its punctuation: a minus or a leading point belongs to a number.
    for text in (label.strip(), bare):
        if _NUMBER.fullmatch(text):
            return Decimal(text)
    # A label of punctuation alone stays itself.
    return bare.casefold() or label.strip().casefold()


def find_class(label: str, classes: Collection[str]) -> str:
    """Return the class that a label means: an equal one, else the only one that differs in spelling alone.

    Without such a class, the label is returned.
    """
    alike = [one for one in classes if label_key(one) == label_key(label)]
    return alike[0] if label not in classes and len(alike) == 1 else label


def unify(rows: DataFrame, golds: Sequence[set[str]]) -> tuple[DataFrame, Spelling]:
    """Give labels that differ only in their spelling one spelling, in a new table.

    `golds` are the true classes of each file; two classes of one file stay apart. Changes `gold`, `predicted`
    and the columns of probabilities, such as `p:bug`.
    """
    counts = {name: rows[name].value_counts() for name in ("gold", "predicted")}
    by_key: dict[str | Decimal, list[str]] = {}
    for label in counts["gold"].index.drop("", errors="ignore"):
        by_key.setdefault(label_key(label), []).append(label)
    # One file spells a class in one way; two spellings in it are two classes on purpose.
    apart = {key for key, alike in by_key.items() if any(len(own.intersection(alike)) > 1 for own in golds)}
    named: dict[str, str] = {}  # each label that is spelled otherwise, and its class
    for key, alike in by_key.items():
        if key not in apart:
            named |= dict.fromkeys(alike[1:], alike[0])
    missing: dict[str, int] = {}
    invented: dict[str | Decimal, str] = {}
    for label, count in counts["predicted"].items():
        key = label_key(label)
        # A word such as "none" may be the name of a true class; then it is that class.
        if key not in by_key and label.casefold() in MISSING:
            missing[label] = int(count)
        elif key not in by_key:
            first = invented.setdefault(key, label)
            named |= {label: first} if first != label else {}
        elif key not in apart and label != by_key[key][0]:
            named[label] = by_key[key][0]
    respelled = {
        label: (name, sum(int(counts[column].get(label, 0)) for column in counts))
        for label, name in named.items()
    }
    # Shallow, because columns are replaced and never changed in place.
    rows = rows.copy(deep=False)
    for column in counts if named else ():
        rows[column] = rows[column].map(lambda label: named.get(label, label), na_action="ignore")
    if missing:
        rows["predicted"] = rows["predicted"].where(~rows["predicted"].isin(missing), None)
    for name in [str(name) for name in rows if str(name).startswith(OF_CLASS)]:
        spelled = OF_CLASS + find_class(name.removeprefix(OF_CLASS), set(rows["gold"]))
        if spelled != name:
            values = rows.pop(name)
            rows[spelled] = rows[spelled].fillna(values) if spelled in rows else values
    classes = sorted({named.get(label, label) for alike in by_key.values() for label in alike})
    return rows, Spelling(respelled, [by_key[key] for key in by_key if key in apart], classes, missing)


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
            message = "the classes are {classes}; name the positive one by {positive}"
            raise OptionError(message, classes=", ".join(classes))
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
