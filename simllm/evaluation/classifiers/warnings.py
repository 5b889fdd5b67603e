"""Warnings about a study of classifiers: what makes its figures mean less than they seem to.

They stand on standard error, in `classifiers.json`, and first on the page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations, islice

import numpy as np
import pandas as pd
from pandas import DataFrame

from simllm.evaluation.classifiers.comparison import ITEM
from simllm.evaluation.classifiers.formats import FAILURE
from simllm.evaluation.classifiers.labels import INVENTED, MISSING, label_key
from simllm.evaluation.classifiers.metrics import Performance, class_numbers, strict_value
from simllm.evaluation.classifiers.predictions import (
    COSTS,
    chances_of,
    positive_scores,
)
from simllm.evaluation.classifiers.protocol import ClassifierResult, ClassifierStudy, main_split
from simllm.io.tables import format_count, format_number, list_some, short_label
from simllm.stats.calibration import LEAST_PROBABILITY

LEAST_ROWS = 10  # with fewer rows, figures say little, and the page shows no intervals
_LEAST_CALIBRATED = 30  # rows with a probability
_MANY_UNPARSED = 0.1  # share of outputs
_MOST_NAMED = 5


def find_warnings(study: ClassifierStudy) -> list[str]:
    """Return a sentence for each thing that makes figures of a study meaningless or too good."""
    rows = study.predictions.rows
    original = rows[rows["variant"] == ""]
    found = [*_of_labels(study), *_of_failures(rows), *_of_items(study, original), *_of_sizes(study)]
    for column in ("fold", "run"):
        for name, own in original.groupby("classifier", sort=False)[column]:
            if 0 < (lacking := int((own == "").sum())) < len(own):
                rows_lack = f"{name}: {lacking:,} of {len(own):,} rows have no {column}, as others do"
                found.append(f"{rows_lack}; the mean and SD over {column}s leave them out.")
    for name, variant in study.predictions.originals.items():
        found.append(
            f"{name} has no original rows (with an empty variant): {variant} counts as the original."
        )
    for name, result in study.classifiers.items():
        split = main_split(result.splits)
        found += _of_labels_given(name, split, result.splits[split], original)
        own = original[(original["classifier"] == name) & (original["split"] == split)]
        if len(own):
            found += _of_scores(f"{name} ({split})", result.splits[split], own)
            found += _of_costs(name, result, own)
    return found


def _listed(names: Iterable[object]) -> str:
    """List at most five names, such as "a, b, c, d, e …"."""
    return list_some(names, _MOST_NAMED, " …")


def _counted(counts: Mapping[str, int]) -> str:
    """List names with their counts, the largest first, such as "maybe: 3, unsure: 1"."""
    most = sorted(counts, key=lambda name: -counts[name])
    return _listed(f"{short_label(name)}: {counts[name]:,}" for name in most)


def _of_labels(study: ClassifierStudy) -> Iterator[str]:
    spelling, rows = study.predictions.spelling, study.predictions.rows
    if spelling.respelled:
        most = sorted(spelling.respelled.items(), key=lambda each: -each[1][1])
        named = _listed(f"{short_label(a)} as {short_label(b)} ({n:,})" for a, (b, n) in most)
        yield f"Labels that differ only in case, outer punctuation or form of a number are one: {named}."
    for alike in spelling.apart:
        yield (
            f"The true classes {_listed(alike)} differ only in spelling. They stay two classes, and only an "
            "exactly equal prediction counts for them."
        )
    if spelling.missing:
        yield f"Words for a missing value count as unparsed outputs ({_counted(spelling.missing)})."
    if doubtful := [label for label in spelling.classes if label.casefold() in MISSING]:
        yield f"The true class {_listed(doubtful)} may stand for missing values; it is taken as a class."
    if study.invented:
        count = sum(study.invented.values())
        given = int((rows["predicted"].notna() | rows[INVENTED]).sum())
        # Metrics of two classes have no place for a third. Of more classes, two labels are one against the
        # rest.
        treated = "counts as unparsed" if len(spelling.classes) == 2 else "is a class of its own"
        if len(study.labels) == 2 < len(spelling.classes):
            treated = f"counts as {study.labels[1]}"
        yield (
            f"{count:,} of {given:,} predicted labels are no item's true class "
            f"({_counted(study.invented)}); the true classes are {_listed(spelling.classes)}. "
            f"Such a label {treated}."
        )


def _of_failures(rows: DataFrame) -> Iterator[str]:
    """Warn about requests to a model that failed for good, which are no answers that cannot be parsed."""
    if FAILURE not in rows:
        return
    failed = rows[rows[FAILURE].fillna("").ne("") & rows["predicted"].isna()]
    for name, own in failed.groupby("classifier", sort=False):
        reason = str(own[FAILURE].value_counts().index[0])
        yield (
            f"{name}: of its unparsed outputs, {len(own):,} come from requests that failed for good "
            f"({short_label(reason)}): the model gave no answer."
        )


def _of_items(study: ClassifierStudy, original: DataFrame) -> Iterator[str]:
    """Warn about items in two splits, missing items, and ids that are written in two ways."""
    if study.leaks:
        are = "item is" if study.leaks == 1 else "items are"
        named = _listed(study.leaked)
        yield f"{study.leaks:,} {are} in two splits of the same fold ({named}): the results are too good."
    ids = {str(split): set(own["item"]) for split, own in original.groupby("split", sort=False)}
    for (first, one), (second, other) in combinations(ids.items(), 2):
        if alike := _alike(one, other):
            yield f"{first} and {second} data may share items whose ids are written in two ways: {alike}."
    for split, rows in original.groupby("split", sort=False):
        # Runs and folds repeat an item.
        once = rows.drop_duplicates(["classifier", *ITEM])
        items = once.groupby("classifier", sort=False).size()
        for name, count in items[items < items.max()].items():
            yield f"{name} has only {count:,} of the {items.max():,} {split} items."
        common = int((once.groupby(ITEM).size() == len(items)).sum())
        # Nothing new: the common items are all items of the smallest classifier, which is named above.
        if len(items) < 2 or common == items.min():
            continue
        if common:
            yield f"All classifiers have {common:,} {split} items in common, on which the tests compare them."
            continue
        own = {str(name): list(part["item"]) for name, part in once.groupby("classifier", sort=False)}
        named = "; ".join(f"{name}: {_listed(own[name])}" for name in islice(own, _MOST_NAMED))
        compares = "nothing compares them" if len(own) == 2 else "no test compares all of them"
        alike = next((found for a, b in combinations(own, 2) if (found := _alike(own[a], own[b]))), "")
        yield f"All classifiers have 0 {split} items in common ({named}): {compares}." + (
            f" Ids that are written in two ways are two items: {alike}." if alike else ""
        )
    yield from _of_equal_classifiers(original)


def _alike(first: Iterable[str], second: Iterable[str]) -> str:
    """Name ids of two groups that differ only in case or form of a number, such as "1 and 1.0"."""
    first, second = set(first), set(second)
    keys = {label_key(name): name for name in first - second}
    pairs = [(keys[key], name) for name in sorted(second - first) if (key := label_key(name)) in keys]
    return _listed(f"{one} and {other}" for one, other in pairs)


def _of_equal_classifiers(original: DataFrame) -> Iterator[str]:
    """Warn about classifiers whose predictions are all equal."""
    columns = ["split", "fold", "run", *ITEM, "predicted"]
    same: dict[tuple[int, int], list[str]] = {}
    for name, own in original.groupby("classifier", sort=False):
        # A sum of hashes does not depend on the order of the rows, as files may be sorted differently.
        hashed = pd.util.hash_pandas_object(own[columns].fillna("").astype(str), index=False)
        same.setdefault((len(own), int(hashed.sum())), []).append(str(name))
    for (count, _), names in same.items():
        # In a few rows, equal labels are no surprise.
        if len(names) > 1 and count >= LEAST_ROWS:
            yield f"{_listed(names)} give the same labels in all {count:,} rows."


def _of_sizes(study: ClassifierStudy) -> Iterator[str]:
    """Warn about few rows, groups or variants, other splits than test, and a tie on validation data."""
    results = study.classifiers
    mains = {name: main_split(found.splits) for name, found in results.items()}
    for split in dict.fromkeys(mains.values()):
        names = [name for name, own in mains.items() if own == split]
        if split == "train":
            yield f"{_listed(names)}: the figures are of training data, on which any classifier looks good."
        elif len(set(mains.values())) > 1:
            yield f"{_listed(names)}: the figures are of {split} data; others are of other data."
    few = {
        f"{name} {split}": part.n
        for name, found in results.items()
        for split, part in found.splits.items()
        if part.n < LEAST_ROWS
    }
    if few:
        yield f"Fewer than {LEAST_ROWS} rows say little ({_counted(few)})."
    values = {
        name: strict_value(found.splits["validation"], study.select_by)
        for name, found in results.items()
        if "validation" in found.splits
    }
    if study.selected:
        best = [name for name, value in values.items() if value == values[study.selected]]
        if len(best) > 1:
            tied = f"{_listed(best)} have the same {study.select_by} on validation data"
            yield f"{tied}; {study.selected} is only the first of them."
    yield from _of_groups(study)
    small = {
        variant: one.n
        for found in results.values()
        for variant, one in found.robustness.variants.items()
        if one.n < LEAST_ROWS
    }
    if small:
        yield f"Variants with fewer than {LEAST_ROWS} items say little about robustness ({_counted(small)})."


def _of_groups(study: ClassifierStudy) -> Iterator[str]:
    sizes: dict[str, dict[str, int]] = {}
    for found in study.classifiers.values():
        for group, parts in found.splits[main_split(found.splits)].groups.items():
            for value, part in parts.items():
                known = sizes.setdefault(group, {})
                # The smallest of the classifiers decides, since each has its own rows.
                known[value] = min(part.n, known.get(value, part.n))
    for group, counts in sizes.items():
        if len(counts) < 2:
            yield f"{group} has fewer than two groups: there is nothing to compare."
        if few := {value: n for value, n in counts.items() if n < LEAST_ROWS}:
            yield (
                f"Groups of {group} with fewer than {LEAST_ROWS} rows ({_counted(few)}): their rates, and "
                "the differences DPD and EOD between the extremes, say little."
            )
    lacking = Counter(
        f"{group} {value}"
        for found in study.classifiers.values()
        for group, fair in found.fairness.items()
        for value, one in fair.groups.items()
        if one.tpr is None or one.fpr is None
    )
    if lacking:
        yield f"Groups of one true class have no TPR or no FPR, and EOD leaves them out: {_listed(lacking)}."


def _of_labels_given(name: str, split: str, found: Performance, original: DataFrame) -> Iterator[str]:
    """Warn if the labels of a classifier are few, all equal, or no better than the largest class."""
    parsed, who = found.n - found.unparsed, f"{name} ({split})"
    strict = found.strict["accuracy"]
    if found.unparsed > _MANY_UNPARSED * found.n:
        told = f"the figures are over {parsed:,} of them" if parsed else "none has a label"
        wrong = "" if strict is None else f"; if they count as wrong, the accuracy is {format_number(strict)}"
        of = format_count(found.n, "output")
        yield f"{who}: {found.unparsed:,} of {of} are unparsed, and {told}{wrong}."
    if not parsed:
        return
    counts = np.array(found.matrix)
    given, true = np.flatnonzero(counts.sum(axis=0)), np.flatnonzero(counts.sum(axis=1))
    reasons = []
    if len(given) == 1:
        reasons.append(f"it always answers {short_label(found.labels[given[0]])}")
    if len(true) == 1:
        reasons.append(f"all its items are {short_label(found.labels[true[0]])}")
    # Metrics such as precision divide by the number of answers, which may be 0 for a class.
    if found.undefined:
        reasons.append(f"0 / 0 is shown as 0 for {_listed(found.undefined)}")
    if reasons:
        yield f"{who}: {'; '.join(reasons)}."
    gold = original.loc[(original["classifier"] == name) & (original["split"] == split), "gold"]
    shares = gold.value_counts(normalize=True)
    if len(shares) > 1 and strict is not None and strict <= shares.iloc[0]:
        yield (
            f"{who} is right in {format_number(strict)} of the rows; always answering "
            f"{short_label(str(shares.index[0]))} would be right in {format_number(float(shares.iloc[0]))}."
        )


def _of_scores(who: str, found: Performance, rows: DataFrame) -> Iterator[str]:
    """Warn if probabilities or scores contradict the labels, are few or equal, or are 0 for a true class."""
    parsed = rows[rows["predicted"].notna()]
    gold, predicted = class_numbers(parsed, found.labels)
    # `true` is the probability of each row's true class; empty if there are only scores.
    true, against = np.array([]), found.other_side or 0
    if is_binary := len(found.labels) == 2:
        scores, are_chances = positive_scores(parsed, found.labels[0], found.labels)
        true = np.where(gold == 0, scores, 1 - scores) if are_chances else true
    else:
        scores, chances = parsed["confidence"].to_numpy(float), chances_of(parsed, found.labels)
        if chances is not None:
            table, each = chances.to_numpy(float), np.arange(len(parsed))
            true, own = table[each, gold], table[each, predicted]
            against = int((own < table.max(axis=1)).sum())
            scores = np.where(np.isnan(scores), own, scores)
    known = ~np.isnan(scores)
    count = int(known.sum())
    if not count:
        return
    if count < len(parsed):
        yield (
            f"{who} has a probability or score in {count:,} of {len(parsed):,} parsed rows; AUC and "
            "calibration are over these."
        )
    yield from _of_contradictions(who, found, against, count)
    if is_binary and count > 1 and np.ptp(scores[known]) == 0:
        yield f"{who} has the same score in all rows; it orders nothing, and the AUC is .5."
    # A probability of 0 would make the log loss infinite.
    if zero := int((true < LEAST_PROBABILITY).sum()):
        yield (
            f"{who} gives the true class the probability 0 in {format_count(zero, 'row')}; the log loss "
            f"takes {LEAST_PROBABILITY:.1e} for it, as scikit-learn does."
        )
    if found.calibration and count < _LEAST_CALIBRATED:
        one = next(iter(found.calibration.values()))
        chance = one.expected_if_calibrated
        also = "" if chance is None else f"; by chance alone, the ECE would be {format_number(chance)}"
        yield f"{who}: {format_count(count, 'row')} with a probability are few for the calibration{also}."


def _of_contradictions(who: str, found: Performance, against: int, count: int) -> Iterator[str]:
    auc, mcc = found.metrics.get("auc"), found.metrics["mcc"].value or 0
    if auc and auc.value is not None and auc.value < 0.5 and mcc > 0:
        # Without an interval, only a clear contradiction counts: both far from their neutral values .5 and 0.
        sure = auc.high < 0.5 if auc.high is not None else min(0.5 - auc.value, mcc) > 0.3
        if sure:
            yield (
                f"{who}: the scores rank the items the wrong way round (AUC {format_number(auc.value)}), "
                f"although the labels do not (MCC {format_number(mcc)}). Are they scores of the other class?"
            )
    if 2 * against > count:
        yield (
            f"{who}: in {against:,} of {count:,} rows the predicted label is not the more probable one. "
            "Is the number that of another class?"
        )


def _of_costs(name: str, found: ClassifierResult, rows: DataFrame) -> Iterator[str]:
    partial = {cost: int(rows[cost].notna().sum()) for cost in COSTS if cost in found.costs}
    partial = {cost: count for cost, count in partial.items() if count < len(rows)}
    if partial:
        yield f"{name} reports costs of some of its {len(rows):,} rows only ({_counted(partial)})."
