"""Splits of items into training, validation and test data, or into folds.

This is step S1 of the protocol ECSER-LLM for studies of classifiers. A fold is a set of items that are tested
together, by a model that is trained on the other folds. Items are the n rows of a table of texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame, Series

from simllm.errors import InputError, OptionError
from simllm.evaluation.classifiers.labels import label_key
from simllm.io.tables import list_some, short_label

_MOST_FOLDS = 20  # to choose items in whole groups, some of so many folds are chosen
_FEW, _FAR = 10, 0.1  # items of a part; difference between the wanted and the real share of test items
_MOST_CLASSES, _MOST_NAMED = 20, 5
_LONG = 20  # mean number of characters in a column of texts, which should not occur in two parts
METHODS = ("holdout", "k-fold", "leave-one-out", "leave-one-group-out")


@dataclass(frozen=True)
class SplitPlan:
    """Settings of a split.

    Attributes:
        method: One of `METHODS`. "holdout" chooses test items, and validation items if `validation` is above
            0; all other items are training items. The other methods divide the items into folds.
        test: The share of test items, for "holdout".
        validation: The share of validation items, for "holdout".
        folds: The number of folds, for "k-fold".
        stratify: The names of columns whose values should have about the same distribution in all parts.
        group: The name of a column; items with the same value in this column get into the same part. None if
            items are split one by one.
    """

    method: str = "holdout"
    test: float = 0.2
    validation: float = 0.0
    folds: int = 10
    stratify: Sequence[str] = ()
    group: str | None = None
    seed: int = 0


def split_items(rows: DataFrame, plan: SplitPlan) -> Series:
    """Split n items; return (n,) texts: "train", "validation" or "test", or the number of the fold from 1."""
    columns = (*plan.stratify, *([plan.group] if plan.group else []))
    for name in columns:
        if name not in rows:
            raise InputError(f"no column {name}; there are {', '.join(map(str, rows.columns))}")
    if plan.method not in METHODS:
        raise InputError(f"method {plan.method!r}: expected {', '.join(METHODS)}")
    if not 0 <= plan.seed < 2**32:  # the range of numpy's seeds
        raise InputError(f"seed {plan.seed}: expected a number from 0 to 2^32 - 1")
    for name in columns:
        if (empty := rows[name].isna()).any():
            raise InputError(f"row {int(empty.to_numpy().argmax()) + 1}: nothing under {name}")
    if plan.method == "leave-one-out" and (plan.group or plan.stratify):
        raise OptionError("leave-one-out takes neither {group} nor {stratify}")
    if plan.method == "leave-one-group-out" and plan.stratify:
        raise OptionError("leave-one-group-out takes no {stratify}")
    # Rows of one item in two parts would be a leak: the model has seen the test item.
    if plan.group is None and "item" in rows and rows["item"].duplicated().any():
        raise OptionError("an item stands in several rows; keep its rows together by {group} item")
    if plan.method == "leave-one-group-out" and plan.group is None:
        raise OptionError("leave-one-group-out needs {group}: the column with the groups")
    if plan.method == "holdout":
        return _hold_out(rows, plan)
    return Series(_folds(rows, plan) + 1, rows.index).astype(str)


def find_warnings(rows: DataFrame, parts: Series, plan: SplitPlan) -> list[str]:
    """Return a sentence for each thing that makes results on a split mean less than they seem to.

    `parts` are the results of `split_items`. The column `gold`, if any, has the true classes.
    """
    found = []
    sizes = parts.value_counts(sort=False)
    small = {f"{part} ({size})": size for part, size in sizes.items() if size < _FEW}
    if small and plan.method == "holdout":  # folds are averaged
        found.append(f"parts with fewer than {_FEW} items say little: {list_some(small, _MOST_NAMED, ' …')}")
    share = sizes.get("test", 0) / len(rows)
    # Groups have different sizes, so that a share of the groups may be another share of the items.
    if plan.method == "holdout" and abs(share - plan.test) > max(_FAR, 1 / len(rows)):
        found.append(f"the test data are {share:.0%} of the items, not {plan.test:.0%}")
    # A fold of one item always lacks the other classes.
    if "gold" in rows and plan.method != "leave-one-out" and rows["gold"].nunique() <= _MOST_CLASSES:
        table = rows.groupby([parts, rows["gold"]]).size().unstack(fill_value=0)
        lacking = [f"{part}: {label}" for part, own in table.iterrows() for label in own.index[own == 0]]
        advice = "; --stratify gold spreads them" if plan.method in ("holdout", "k-fold") else ""
        if lacking:
            found.append(f"parts without an item of a class: {list_some(lacking, _MOST_NAMED, ' …')}{advice}")
    for name in (str(name) for name in rows):
        texts = rows[name].dropna()
        if name == "item":
            texts = texts.map(label_key)
        elif texts.str.len().mean() < _LONG or texts.nunique() < len(texts) / 2:
            continue  # labels and numbers repeat in any data
        repeated = parts[texts.index].groupby(texts, sort=False).nunique()
        if count := int((repeated > 1).sum()):
            example = rows[name][texts.index[texts == repeated.idxmax()]].iloc[0]
            equal = "ids equal but for case or form of a number" if name == "item" else f"equal {name}"
            found.append(f"{equal} in several parts: {count:,} ({short_label(str(example))}); a leak")
    return found


def _hold_out(rows: DataFrame, plan: SplitPlan) -> Series:
    total = plan.test + plan.validation
    # Both may be all items, rounding aside: a model that is only asked needs no training data.
    if not (0 < plan.test < 1 and plan.validation >= 0 and total < 1 + 1e-9):
        shares = f"test {plan.test:g} and validation {plan.validation:g}"
        raise InputError(f"{shares}: expected shares from 0 that are at most 1 together")
    splits = Series("train", rows.index)
    splits[_choose(rows, plan, plan.test)] = "test"
    if total > 1 - 1e-9:
        splits[splits == "train"] = "validation"
    elif plan.validation:
        rest = rows[splits == "train"]
        # A share of all items is a larger share of what the test data left.
        chosen = _choose(rest, plan, plan.validation / (1 - plan.test))
        splits[rest.index[chosen]] = "validation"
    return splits


def _choose(rows: DataFrame, plan: SplitPlan, share: float) -> NDArray[np.int_]:
    """Choose a share of the items at random, as `plan` says; return their positions."""
    from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit, StratifiedShuffleSplit

    labels, groups = _strata(rows, plan), rows[plan.group] if plan.group else None
    shuffled = {"n_splits": 1, "test_size": share, "random_state": plan.seed}
    if labels is not None and groups is not None:
        # scikit-learn has no stratified shuffle split that keeps groups whole, only folds.
        return _choose_folds(rows, labels, groups, plan.seed, share)
    if groups is not None:
        splitter = GroupShuffleSplit(**shuffled)
    else:
        if labels is not None:
            _check_classes(labels, 2)
        splitter = StratifiedShuffleSplit(**shuffled) if labels is not None else ShuffleSplit(**shuffled)
    try:
        return next(iter(splitter.split(rows, labels, groups)))[1]
    except ValueError as error:  # too few items or groups
        raise InputError(f"cannot split {len(rows)} items: {error}") from None


def _choose_folds(
    rows: DataFrame, labels: Series, groups: Series, seed: int, share: float
) -> NDArray[np.int_]:
    """Choose a share of the items, stratified by (n,) labels, without dividing one of the (n,) groups."""
    from sklearn.model_selection import StratifiedGroupKFold

    _check_classes(labels, 2)
    folds = int(min(_MOST_FOLDS, groups.nunique(), labels.value_counts().min()))
    if folds < 2:
        raise InputError(f"stratified groups need 2 groups, not {groups.nunique()}")
    splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    parts = [test for _, test in splitter.split(rows, labels, groups)]
    # At least one fold on either side.
    wanted = min(max(1, round(share * folds)), folds - 1)
    return np.concatenate(parts[:wanted])


def _strata(rows: DataFrame, plan: SplitPlan) -> Series | None:
    """Return the (n,) strata: the values of each item in the columns `plan.stratify`, joined to one text."""
    if not plan.stratify:
        return None
    # The unit separator occurs in no label, so that ("a b", "c") and ("a", "b c") differ.
    return rows[list(plan.stratify)].astype(str).agg("\x1f".join, axis=1)


def _check_classes(labels: Series, least: int) -> None:
    counts = labels.value_counts()
    if counts.iloc[-1] < least:
        named = ", ".join(str(counts.index[-1]).split("\x1f"))
        raise InputError(f"only {counts.iloc[-1]} of the items have {named}; stratifying needs {least}")


def _folds(rows: DataFrame, plan: SplitPlan) -> NDArray[np.int_]:
    """Return the (n,) folds of the items, counted from 0."""
    from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

    if plan.method == "leave-one-out":
        return np.arange(len(rows))
    groups = rows[plan.group] if plan.group else None
    if plan.method == "leave-one-group-out":
        assert groups is not None  # split_items checks it
        if groups.nunique() < 2:
            raise InputError(f"leave-one-group-out needs 2 groups; {plan.group} has {groups.nunique()}")
        return groups.factorize()[0]
    kinds = groups.nunique() if groups is not None else len(rows)
    if not 2 <= plan.folds <= kinds:
        counted = f"the groups of {plan.group}" if plan.group else "the items"
        raise InputError(f"{plan.folds} folds: expected from 2 to {kinds}, the number of {counted}")
    labels = _strata(rows, plan)
    if labels is not None:
        _check_classes(labels, plan.folds)
    settings = {"n_splits": plan.folds, "shuffle": True, "random_state": plan.seed}
    if groups is not None:
        splitter = (StratifiedGroupKFold if labels is not None else GroupKFold)(**settings)
    else:
        splitter = (StratifiedKFold if labels is not None else KFold)(**settings)
    folds = np.empty(len(rows), int)
    for number, (_, test) in enumerate(splitter.split(rows, labels, groups)):
        folds[test] = number
    return folds
