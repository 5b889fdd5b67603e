"""Fairness and robustness of a classifier (step S8 of the protocol ECSER-LLM).

Fairness compares groups of items, such as languages. Robustness compares variants with the original items.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pandas import DataFrame, Series

from simllm.errors import InputError
from simllm.evaluation.classifiers.labels import INVENTED
from simllm.evaluation.classifiers.predictions import COLUMNS, KEYS, PLACE, positive_scores
from simllm.stats.classification import compare_aucs
from simllm.stats.resampling import paired_permutation
from simllm.stats.significance import mcnemar

_SAME_ITEM = [name for name in KEYS if name != "variant"]
_ITEM = ["data_set", "item"]
_MOST_GROUPS = 200  # in a column of groups


def fill_groups(rows: DataFrame, groups: Sequence[str]) -> DataFrame:
    """Return a copy of the table whose columns of groups have empty strings for missing values.

    A column is an `InputError` if it is missing, reserved for something else, or has over 200 values.
    """
    # A name with a colon is a column of probabilities, such as p:bug.
    own = {*COLUMNS, PLACE, INVENTED}
    allowed = [str(name) for name in rows if name not in own and ":" not in str(name)]
    rows = rows.copy()
    for group in groups:
        if group not in [*allowed, "data_set"] or group not in rows:
            raise InputError(f"no column {group} for groups; there are {', '.join(allowed) or 'none'}")
        rows[group] = rows[group].fillna("")
        # A column of ids or free text would make a group of each item.
        if (count := rows[group].nunique()) > _MOST_GROUPS:
            raise InputError(f"the column {group} has {count:,} groups; expected at most {_MOST_GROUPS}")
    return rows


@dataclass(frozen=True)
class GroupRates:
    """The rates of a classifier on one group of n rows without unparsed outputs; None where undefined.

    Attributes:
        selection_rate: The share of positive predictions.
        tpr: The share of positive items that are predicted positive.
        fpr: The share of negative items that are predicted positive.
    """

    n: int
    selection_rate: float | None
    tpr: float | None
    fpr: float | None
    accuracy: float | None


@dataclass(frozen=True)
class Fairness:
    """Differences of a classifier's rates between the groups in which they are defined.

    Attributes:
        dpd: Demographic parity difference: the largest minus the smallest share of positive predictions. None
            if there are no groups.
        eod: Equalized odds difference: the largest minus the smallest TPR, or the same of the FPR, whichever
            is larger. None if there are no groups.
    """

    groups: dict[str, GroupRates]
    dpd: float | None
    eod: float | None


def measure_fairness(rows: DataFrame, group: str, positive: str) -> Fairness:
    """Measure how a classifier's predictions differ between the groups in a column.

    Unparsed outputs, and items without a group, are left out.
    """
    groups = {}
    for name, own in rows[rows["predicted"].notna() & (rows[group] != "")].groupby(group, sort=False):
        claims, gold = own["predicted"] == positive, own["gold"] == positive
        right = own["predicted"] == own["gold"]
        rates = (_mean(each) for each in (claims, claims[gold], claims[~gold], right))
        groups[str(name)] = GroupRates(len(own), *rates)
    # Positive and negative items must both be treated alike: the larger gap of TPR and FPR counts.
    gaps = [_gap(getattr(one, rate) for one in groups.values()) for rate in ("tpr", "fpr")]
    known = [gap for gap in gaps if gap is not None]
    return Fairness(groups, _gap(one.selection_rate for one in groups.values()), max(known, default=None))


def _mean(values: Any) -> float | None:
    return float(values.mean()) if len(values) else None


def _gap(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known) - min(known) if known else None


@dataclass(frozen=True)
class VariantRobustness:
    """Comparison of the predictions for one variant with those for the original items.

    An unparsed output counts as wrong. `n`, `lost` and `recovered` count items, `pdr`, `asr` and `flipped`
    rows.

    Attributes:
        n: The number of items with a prediction for the original and for the variant.
        pdr: Performance drop rate: 1 - accuracy on the variant / accuracy on the originals. None if the
            accuracy on the originals is 0.
        asr: Attack success rate: the share of the right predictions for originals that become wrong. None if
            no original is predicted right.
        lost: The number of items whose original is predicted right in more runs than the variant.
        recovered: The number of items whose variant is predicted right in more runs than the original.
        flipped: The share of predictions whose label differs between original and variant.
        test: The test of whether both are predicted right equally often: McNemar's test of `lost` and
            `recovered`, or with several runs a paired permutation test of shares.
        auc: The AUC on originals minus that on the variant ("difference"), with "z" and "p" of DeLong's test.
            Scores are averaged over runs, and AUCs over folds. None without scores, or with three or more
            classes.
    """

    n: int
    pdr: float | None
    asr: float | None
    lost: int
    recovered: int
    flipped: float
    test: str
    p: float
    auc: dict[str, float] | None = None


@dataclass(frozen=True)
class Robustness:
    """Changes of a classifier's predictions if the items are rewritten.

    Attributes:
        robust_items: The number of items with predictions for the original and for every variant.
        robust_accuracy: The share of these items for which the original and all variants are predicted right;
            with several runs, the mean of each item's share of runs. None if `robust_items` is 0.
    """

    variants: dict[str, VariantRobustness] = field(default_factory=dict)
    robust_items: int = 0
    robust_accuracy: float | None = None


def measure_robustness(rows: DataFrame, labels: Sequence[str]) -> Robustness:
    """Compare a classifier's predictions for each variant with the originals, on the rows of one split."""
    indexed = rows.set_index(_SAME_ITEM)
    original = indexed[indexed["variant"] == ""]
    # An item survives a run if the original and all variants are right; items lacking a variant drop out.
    variants, survives = {}, original["predicted"] == original["gold"]
    for name, own in indexed[indexed["variant"] != ""].groupby("variant", sort=False):
        before = original.loc[original.index.isin(own.index)]
        after = own.loc[before.index]
        variants[str(name)] = _compare(before, after, labels)
        right = after["predicted"] == after["gold"]
        survives = survives[survives.index.isin(right.index)]
        survives &= right.loc[survives.index]
    if not variants:
        return Robustness()
    shares = survives.astype(float).groupby(level=_ITEM, sort=False).mean()
    return Robustness(variants, len(shares), _mean(shares))


def _compare(before: DataFrame, after: DataFrame, labels: Sequence[str]) -> VariantRobustness:
    was, is_ = (table["predicted"].eq(table["gold"]).to_numpy() for table in (before, after))
    first, second = (table["predicted"].fillna("").to_numpy() for table in (before, after))
    changes = was.astype(float) - is_
    # Runs of one item are not independent, so that each item counts once in the test.
    losses = Series(changes, before.index).groupby(level=_ITEM, sort=False).mean().to_numpy()
    lost, recovered = int((losses > 0).sum()), int((losses < 0).sum())
    has_runs = len(losses) < len(was)
    # McNemar's test needs one answer of each item, right or wrong.
    outcome = paired_permutation(losses) if has_runs else mcnemar(lost, recovered)
    return VariantRobustness(
        n=len(losses),
        pdr=1 - float(is_.mean() / was.mean()) if was.any() else None,
        asr=int((was & ~is_).sum()) / int(was.sum()) if was.any() else None,
        lost=lost,
        recovered=recovered,
        flipped=float((first != second).mean()),
        test=outcome.test,
        p=outcome.p,
        auc=_compare_aucs(before, after, labels) if len(labels) == 2 else None,
    )


def _compare_aucs(before: DataFrame, after: DataFrame, labels: Sequence[str]) -> dict[str, float] | None:
    parsed = (before["predicted"].notna() & after["predicted"].notna()).to_numpy()
    scores = np.stack([positive_scores(table[parsed], labels[0], labels)[0] for table in (before, after)])
    table = DataFrame(scores.T, before.index[parsed]).assign(positive=before["gold"][parsed] == labels[0])
    # Averaged over runs within a fold, because scores of different folds cannot be compared.
    table = table.dropna().groupby(level=["fold", *_ITEM], sort=False).mean()
    positive = table.pop("positive").to_numpy(bool)
    if min(positive.sum(), (~positive).sum()) < 2:
        return None
    repeats = len(table) / len(table.groupby(level=_ITEM))
    folds = table.index.get_level_values("fold").to_numpy()
    difference, _, z, p = compare_aucs(positive, table.to_numpy().T, folds, repeats)
    if math.isnan(difference):
        return None
    return {"difference": difference, "z": z, "p": p}
