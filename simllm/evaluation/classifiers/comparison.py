"""Significance tests that compare classifiers (step S11 of the protocol ECSER-LLM).

Each comparison uses only the items for which all compared classifiers have predictions. An unparsed output
counts as wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from simllm.array_types import Floats, Ints
from simllm.evaluation.classifiers.metrics import LOWER_IS_BETTER, compute_metrics, measure, strict_value
from simllm.evaluation.classifiers.predictions import positive_scores
from simllm.evaluation.classifiers.significance import Answer, Finding, answer, describe_discordant, is_right
from simllm.stats.classification import bootstrap, compare_aucs
from simllm.stats.intervals import Z, mean_interval, paired_difference
from simllm.stats.resampling import interval, paired_permutation
from simllm.stats.significance import (
    MANY_DATA_SETS,
    Outcome,
    choose_for_classifiers,
    cochran_q,
    friedman_nemenyi,
    mcnemar,
    wilcoxon,
)

ITEM = ["data_set", "item"]
Metrics = dict[str, Floats]
_MOST_CLASSES = 5  # more classes make too many cells for a bootstrap of two classifiers
_INDEPENDENT_SETS = "The data sets are independent of each other."


def compare_classifiers(
    rows: DataFrame, labels: Sequence[str], metric: str, split: str, alpha: float
) -> Iterator[Answer]:
    """Test which classifiers are better than others, by the test that `choose_for_classifiers` names.

    `rows` has the original items of one split. Six or more data sets are compared by `metric`; otherwise the
    items are compared by accuracy. Yields an answer for all classifiers together, if there is such a test,
    and one for each pair with common items.
    """
    names = list(dict.fromkeys(rows["classifier"]))
    runs = int(rows.groupby(["classifier", *ITEM]).size().max())
    sets = _over_sets(rows, labels, metric) if rows["data_set"].nunique() > 1 else DataFrame()
    test = choose_for_classifiers(len(names), len(sets), runs)
    if test == "wilcoxon":
        yield from answer([_compare_two_over_sets(sets, metric)], split, alpha)
    elif test == "friedman-nemenyi":
        overall, pairs = _compare_many_over_sets(sets, metric, alpha)
        yield from answer([overall], split, alpha)
        yield from answer(pairs, split, alpha, is_corrected=True)
    else:
        right = _right_by_item(rows)
        common = right.dropna()
        if test == "cochran-q" and len(common):
            yield from answer([_compare_all(common)], split, alpha)
        known = common if len(common) else right  # without items of all, each pair has its own
        both = [known[[a, b]].dropna() for a, b in combinations(names, 2)]
        yield from answer([_compare_pair(pair, runs) for pair in both if len(pair)], split, alpha)


def _right_by_item(rows: DataFrame) -> DataFrame:
    """Compute a table of items and classifiers: the share of right predictions; NaN without any."""
    table = rows.assign(right=is_right(rows)).groupby([*ITEM, "classifier"], sort=False)["right"].mean()
    return table.unstack()[list(dict.fromkeys(rows["classifier"]))].astype(float)


def _compare_all(right: DataFrame) -> Finding:
    means = right.mean()
    best, worst = means.idxmax(), means.idxmin()
    return Finding(
        question="Are all classifiers right equally often?",
        classifiers=list(right),
        outcome=cochran_q(right.to_numpy()),
        why=f"{right.shape[1]} classifiers on the same {len(right)} items, one run each.",
        effect=float(means[best] - means[worst]),
        words=f"The shares of right answers range from {means[worst]:.3f} ({worst}) to "
        f"{means[best]:.3f} ({best})",
    )


def _compare_pair(right: DataFrame, runs: int) -> Finding:
    (a, b), n = list(right), len(right)
    first, second = right[a].to_numpy(), right[b].to_numpy()
    if runs > 1:
        differences = first - second
        outcome = paired_permutation(differences)
        effect, ends = outcome.statistic, mean_interval(differences)
        why = (
            f"2 classifiers on the same {n} items, with up to {runs} runs or folds, which are averaged first."
        )
    else:
        only_a, only_b = int((first > second).sum()), int((first < second).sum())
        outcome = mcnemar(only_a, only_b)
        effect, ends = paired_difference(only_a, only_b, n)
        why = (
            f"2 classifiers on the same {n} items; only {a} is right on {only_a}, only {b} on {only_b}: "
            f"{describe_discordant(only_a + only_b)}."
        )
    high, low = sorted((float(first.mean()), float(second.mean())), reverse=True)
    more, less = (a, b) if effect >= 0 else (b, a)
    words = f"{more} is right more often than {less}" if effect else f"{a} and {b} are right equally often"
    return Finding(
        question=f"Is {a} or {b} right more often?",
        classifiers=[a, b],
        outcome=outcome,
        why=why,
        effect=effect,
        interval=ends,
        words=f"{words} ({high:.3f} against {low:.3f})",
    )


def compare_metric(rows: DataFrame, labels: Sequence[str], metric: str) -> list[Finding]:
    """Compare a metric between each two classifiers, by a bootstrap interval of the difference.

    A finding has no p-value. There are none if an item has several rows, with more than five classes, or if
    the metric cannot be computed from a confusion matrix.
    """
    number = {label: index for index, label in enumerate(labels)}
    compute, findings = compute_metrics(labels), []
    # The bootstrap resamples items; it has no place for several answers of a classifier to one item.
    if len(labels) > _MOST_CLASSES or rows.duplicated(["classifier", *ITEM]).any():
        return []
    table = rows.assign(answer=rows["predicted"].map(number).fillna(len(labels)).astype(int))
    answers = table.set_index([*ITEM, "classifier"])["answer"].unstack()
    gold = rows.drop_duplicates(ITEM).set_index(ITEM)["gold"].map(number)
    for a, b in combinations(dict.fromkeys(rows["classifier"]), 2):
        both = answers[[a, b]].dropna().astype(int)
        if both.empty:
            continue
        cells = np.zeros((len(labels), len(labels) + 1, len(labels) + 1), int)
        np.add.at(cells, (gold.loc[both.index].to_numpy(), both[a].to_numpy(), both[b].to_numpy()), 1)
        # Paired: a cell counts a pair of answers, so that each drawn item brings both.
        drawn = bootstrap(cells, lambda counts: {"": _difference(counts, compute, metric)})[""]
        effect = float(_difference(cells, compute, metric))
        if math.isnan(effect):
            continue
        better, worse = (a, b) if effect >= 0 else (b, a)
        words = f"On common items, the {metric} of {better} is {abs(effect):.3f} above that of {worse}"
        findings.append(
            Finding(
                question=f"Has {a} or {b} the better {metric}?",
                classifiers=[a, b],
                outcome=Outcome("none: interval only", math.nan, math.nan),
                why=f"The {len(both)} common items are resampled with both answers.",
                effect=effect,
                interval=interval(drawn, len(both)),
                words=words if effect else f"On common items, {a} and {b} have the same {metric}",
            )
        )
    return findings


def _difference(
    cells: Ints,
    compute: Callable[[Ints], Metrics],
    metric: str,
) -> Floats:
    """Compute the (...) differences of a metric, first classifier minus second; NaN for an unknown metric.

    `cells` has the shape (..., k, k + 1, k + 1): true class, class of the first, class of the second
    classifier; the last index of a predicted class counts unparsed outputs.
    """
    first, second = compute(cells.sum(-1)), compute(cells.sum(-2))
    return first[metric] - second[metric] if metric in first else np.full(cells.shape[:-3], math.nan)


def _over_sets(rows: DataFrame, labels: Sequence[str], metric: str) -> DataFrame:
    """Compute a metric, as `strict_value`, as a table of data sets and classifiers.

    Values are means over runs and folds. Data sets with an undefined value are left out.
    """
    # Other items would make a classifier look better for having easier ones.
    known = rows.groupby(ITEM)["classifier"].transform("nunique") == rows["classifier"].nunique()
    values: dict[str, dict[str, float]] = {}
    for (name, data_set), own in rows[known].groupby(["classifier", "data_set"], sort=False):
        parts = [
            measure(part, labels, details=False, intervals=False)
            for _, part in own.groupby(["run", "fold"], sort=False)
        ]
        found = [value for part in parts if (value := strict_value(part, metric)) is not None]
        values.setdefault(name, {})[data_set] = float(np.mean(found)) if found else math.nan
    table = DataFrame(values).astype(float)
    # Without common items, a classifier has no column.
    return table.dropna() if table.shape[1] == rows["classifier"].nunique() else table.iloc[:0]


def _reason(table: DataFrame, metric: str) -> str:
    sets = f"{len(table)} data sets ({MANY_DATA_SETS} or more)"
    return f"{table.shape[1]} classifiers on {sets}; their {metric} is compared."


def _compare_two_over_sets(table: DataFrame, metric: str) -> Finding:
    a, b = list(table)
    # The table has strict values, negated for such a metric; the reader gets the metric's own sign.
    difference = float((table[a] - table[b]).median()) * (-1 if metric in LOWER_IS_BETTER else 1)
    return Finding(
        question=f"Is {a} or {b} better over data sets?",
        classifiers=[a, b],
        outcome=wilcoxon(table[a].to_numpy(), table[b].to_numpy()),
        why=_reason(table, metric),
        effect=difference,
        words=f"The median of {metric} of {a} minus that of {b} is {difference:+.3f}",
        assumptions=_INDEPENDENT_SETS,
    )


def _compare_many_over_sets(table: DataFrame, metric: str, alpha: float) -> tuple[Finding, list[Finding]]:
    """Run Friedman's test of all classifiers and Nemenyi's of each pair, on a table as of `_over_sets`."""
    names, found = list(table), friedman_nemenyi(table.to_numpy(), alpha)
    ranks = dict(zip(names, found.mean_ranks.tolist(), strict=True))
    listed = ", ".join(f"{name} {ranks[name]:.2f}" for name in sorted(names, key=ranks.__getitem__))
    overall = Finding(
        question="Are all classifiers equally good over data sets?",
        classifiers=names,
        outcome=found.outcome,
        why=_reason(table, metric),
        effect=max(ranks.values()) - min(ranks.values()),
        words=f"The mean ranks are {listed} (1 is best)",
        assumptions=_INDEPENDENT_SETS,
    )
    pairs = []
    for i, j in combinations(range(len(names)), 2):
        difference = ranks[names[i]] - ranks[names[j]]
        pairs.append(
            Finding(
                question=f"Is {names[i]} or {names[j]} better over data sets?",
                classifiers=[names[i], names[j]],
                outcome=Outcome("friedman-nemenyi", difference, float(found.p[i, j])),
                why=f"{_reason(table, metric)} Nemenyi's test corrects for all pairs.",
                effect=difference,
                words=f"The mean ranks of {names[i]} and {names[j]} differ by {abs(difference):.2f} "
                f"(critical: {found.critical_difference:.2f})",
                assumptions=_INDEPENDENT_SETS,
            )
        )
    return overall, pairs


def compare_auc(rows: DataFrame, labels: Sequence[str]) -> list[Finding]:
    """Compare the AUC for two classes between each pair of classifiers by DeLong's test.

    A pair is left out if its common items have fewer than two of either class, or no fold has both classes.
    """
    scores = {}
    for name, own in rows[rows["predicted"].notna()].groupby("classifier", sort=False):
        values, _ = positive_scores(own, labels[0], labels)
        # If only one of two classifiers has folds, joining on the item gives its folds to both.
        keys = ITEM if own["fold"].nunique() == 1 else ["fold", *ITEM]
        scores[name] = Series(values, pd.MultiIndex.from_frame(own[keys])).groupby(level=keys).mean()
    gold = rows.drop_duplicates(ITEM).set_index(ITEM)["gold"] == labels[0]
    findings = []
    for a, b in combinations(scores, 2):
        first, second = scores[a].dropna().reset_index(name="a"), scores[b].dropna().reset_index(name="b")
        both = first.merge(second)  # on the item, and on the fold if both have several
        positive = gold.loc[pd.MultiIndex.from_frame(both[ITEM])].to_numpy()
        if min(positive.sum(), (~positive).sum()) < 2:
            continue
        folds = both["fold"].to_numpy() if "fold" in both else None
        items = len(both.drop_duplicates(ITEM))
        pair = both[["a", "b"]].to_numpy().T
        difference, error, z, p = compare_aucs(positive, pair, folds, len(both) / items)
        if math.isnan(difference):
            continue
        difference = round(difference, 12)  # equal areas may differ in their last bits
        words = f"The AUC of {a if difference > 0 else b} is larger by {abs(difference):.3f}"
        findings.append(
            Finding(
                question=f"Does {a} or {b} order the items better (AUC)?",
                classifiers=[a, b],
                outcome=Outcome("delong", z, p),
                why=f"Both have scores for {items} common items"
                + ("." if folds is None else ", which are compared within folds."),
                effect=difference,
                interval=(difference - Z * error, difference + Z * error) if error > 1e-12 else None,
                words=words if difference else f"{a} and {b} have the same AUC",
            )
        )
    return findings
