"""Significance tests that compare classifiers (step S11 of the protocol ECSER-LLM).

The tests compare the accuracy, the values of a metric on several data sets, and the AUC. Each comparison uses
only the items for which all compared classifiers have predictions. An output that could not be parsed counts
as wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from simllm.array_types import Floats, Ints
from simllm.evaluation.classifiers.metrics_with_intervals import (
    LOWER_IS_BETTER,
    compute_metrics,
    measure,
    strict_value,
)
from simllm.evaluation.classifiers.positive_class_score import positive_scores
from simllm.evaluation.classifiers.significance_verdicts import Answer, Finding, answer
from simllm.evaluation.classifiers.single_classifier_tests import describe_discordant, is_right
from simllm.stats.classifier_test_choice import MANY_DATA_SETS, choose_for_classifiers
from simllm.stats.confusion_matrix_bootstrap import bootstrap, quantiles
from simllm.stats.delong_auc import compare_aucs
from simllm.stats.mcnemar_and_cochran_q import cochran_q, mcnemar
from simllm.stats.paired_bootstrap_and_permutation import paired_permutation
from simllm.stats.proportion_intervals import Z, mean_interval, paired_difference
from simllm.stats.significance_outcome import Outcome
from simllm.stats.wilcoxon_friedman_and_kruskal import friedman_nemenyi, wilcoxon

ITEM = ["data_set", "item"]
Metrics = dict[str, Floats]
_MOST_CLASSES = 5  # more classes make too many cells for a bootstrap of two classifiers
_INDEPENDENT_SETS = "The data sets are independent of each other."


def compare_classifiers(
    rows: DataFrame, labels: Sequence[str], metric: str, split: str, alpha: float
) -> Iterator[Answer]:
    """Test which classifiers are better than others on a split, such as the test data.

    With six or more data sets, the values of a metric on the data sets are compared. Otherwise, the accuracy
    on the items is compared. The test also depends on the number of classifiers, and on whether a classifier
    has several predictions for the same item (several runs).

    Args:
        rows: The predictions of all classifiers on the split, only for original items (not for rewritten
            items).
        labels: The classes.
        metric: The metric that is compared over data sets.
        split: The name of the split.
        alpha: The significance level.

    Yields:
        The result of a test for each pair of classifiers that has common items. With three or more
        classifiers, the result of a test of all classifiers together comes first. It is left out if there is
        no such test, for example with several runs on a single data set.
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
    """Compute the share of right predictions of each classifier for each item.

    The share is 0 or 1 if a classifier has one prediction for an item. The share may lie between 0 and 1 if a
    classifier has several predictions for an item (several runs).

    Args:
        rows: The predictions of all classifiers: a table with a row for each prediction.

    Returns:
        A table of the shares, with a row for each item and a column for each classifier. A share is NaN if
        the classifier has no prediction for the item.
    """
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
        effect, interval = outcome.statistic, mean_interval(differences)
        why = (
            f"2 classifiers on the same {n} items, with up to {runs} runs or folds, which are averaged first."
        )
    else:
        only_a, only_b = int((first > second).sum()), int((first < second).sum())
        outcome = mcnemar(only_a, only_b)
        effect, interval = paired_difference(only_a, only_b, n)
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
        interval=interval,
        words=f"{words} ({high:.3f} against {low:.3f})",
    )


def compare_metric(rows: DataFrame, labels: Sequence[str], metric: str) -> list[Finding]:
    """Compare the metric values of each two classifiers, with a bootstrap interval of the difference.

    The bootstrap resamples the items for which both classifiers have predictions. The bootstrap is paired:
    each drawn item brings the predictions of both classifiers.

    Args:
        rows: The predictions of all classifiers: a table with a row for each prediction.
        labels: The classes. If there are two, the first one is the positive class.
        metric: The name of the metric.

    Returns:
        One result for each pair of classifiers whose difference is defined. A result has an interval, but no
        p-value. The list is empty in three cases:

        - A classifier has several predictions for an item.
        - There are more than five classes. The table of counts would be too large for a bootstrap.
        - The metric needs scores, so that it cannot be computed from a confusion matrix.
    """
    number = {label: index for index, label in enumerate(labels)}
    compute, findings = compute_metrics(labels), []
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
                interval=quantiles(drawn, len(both)),
                words=words if effect else f"On common items, {a} and {b} have the same {metric}",
            )
        )
    return findings


def _difference(
    cells: Ints,
    compute: Callable[[Ints], Metrics],
    metric: str,
) -> Floats:
    """Compute the difference of a metric between two classifiers, the first minus the second.

    Args:
        cells: (..., k, k + 1, k + 1) numbers of items. The last three axes stand for the true class, the
            class that the first classifier predicts, and the class that the second one predicts. The last
            index of a predicted class stands for outputs that could not be parsed.
        compute: The function that computes metrics from confusion matrices.
        metric: The name of the metric.

    Returns:
        (...) differences; NaN if the function does not compute this metric.
    """
    first, second = compute(cells.sum(-1)), compute(cells.sum(-2))
    return first[metric] - second[metric] if metric in first else np.full(cells.shape[:-3], math.nan)


def _over_sets(rows: DataFrame, labels: Sequence[str], metric: str) -> DataFrame:
    """Compute a metric of each classifier on each data set, for significance tests over data sets.

    Only the items for which all classifiers have predictions are used. The metric is computed separately for
    each run and fold, and then averaged over the runs and folds.

    Returns:
        A table with a row for each data set and a column for each classifier. If lower values of the metric
        are better, the values are negated. Data sets on which a value is not defined are left out.
    """
    known = rows.groupby(ITEM)["classifier"].transform("nunique") == rows["classifier"].nunique()
    values: dict[str, dict[str, float]] = {}
    for (name, data_set), own in rows[known].groupby(["classifier", "data_set"], sort=False):
        parts = [measure(part, labels, details=False) for _, part in own.groupby(["run", "fold"], sort=False)]
        found = [value for part in parts if (value := strict_value(part, metric)) is not None]
        values.setdefault(name, {})[data_set] = float(np.mean(found)) if found else math.nan
    table = DataFrame(values).astype(float)
    return table.dropna() if table.shape[1] == rows["classifier"].nunique() else table.iloc[:0]


def _reason(table: DataFrame, metric: str) -> str:
    sets = f"{len(table)} data sets ({MANY_DATA_SETS} or more)"
    return f"{table.shape[1]} classifiers on {sets}; their {metric} is compared."


def _compare_two_over_sets(table: DataFrame, metric: str) -> Finding:
    a, b = list(table)
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
    """Compare three or more classifiers over data sets.

    Args:
        table: Values of the metric: a row for each data set, a column for each classifier.
        metric: The name of the metric.
        alpha: The significance level.

    Returns:
        The result of Friedman's test of all classifiers together, and of Nemenyi's test of each pair.
    """
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
    """Compare the AUC between each pair of classifiers by DeLong's test.

    A pair is compared on the items for which both classifiers have scores. If an item has several scores from
    several runs, their mean is used. Each fold has its own AUC, and the means over folds are compared; see
    `mean_auc_with_covariance`. If only one of the two classifiers has folds, its folds are used for both.

    Args:
        rows: The predictions of all classifiers: a table with a row for each prediction.
        labels: The two classes. The first one is the positive class.

    Returns:
        The test result for each pair of classifiers. A pair is left out if its common items include fewer
        than two positive or fewer than two negative ones, or if no fold has both kinds of items.
    """
    scores = {}
    for name, own in rows[rows["predicted"].notna()].groupby("classifier", sort=False):
        values, _ = positive_scores(own, labels[0], labels)
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
