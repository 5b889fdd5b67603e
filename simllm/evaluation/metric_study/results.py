"""Results of a study of metrics, and correlations in groups of pairs: by language, system and length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simllm.evaluation.ratings import Ratings
from simllm.stats.agreement import RaterAgreement
from simllm.stats.correlation import rank_correlations
from simllm.text_cleaning import clean

_FEWEST = 20  # pairs in a group; the correlation over fewer pairs is too uncertain
Matrix = list[list[float]]


@dataclass(frozen=True)
class Group:
    """A group of rated pairs with each metric's correlation.

    Attributes:
        by: The property that the pairs share: "language", "system" or "length" (of the references).
        label: The value of the property, such as "java" or "5 to 8 words".
        spearman: Spearman's rho between scores and ratings, by metric name.
    """

    by: str
    label: str
    pairs: int
    spearman: dict[str, float]


def correlate_groups(rated: Ratings, values: dict[str, NDArray[np.float64]]) -> list[Group]:
    """Correlate the (n,) scores of each metric with the ratings in groups: by language, then system, then
    length.

    Groups of fewer than twenty pairs are left out. So is a property with fewer than two groups left.
    """
    all_labels = {**rated.groups, "length": _lengths(rated.references)}
    groups = []
    for by, labels in all_labels.items():
        counts = Counter(labels)
        parts = sorted((label for label in counts if counts[label] >= _FEWEST), key=_in_order)
        # A single group has nothing to be compared with.
        if len(parts) < 2:
            continue
        rows_of: dict[str, list[int]] = {label: [] for label in parts}
        for row, label in enumerate(labels):
            if label in rows_of:
                rows_of[label].append(row)
        for label, rows in rows_of.items():
            scores = np.stack([of_metric[rows] for of_metric in values.values()])
            rho = rank_correlations(scores, np.broadcast_to(rated.values[rows], scores.shape))
            groups.append(Group(by, label, len(rows), dict(zip(values, rho.tolist(), strict=True))))
    return groups


def largest_groups(groups: Sequence[Group], limit: int) -> list[Group]:
    """Return the groups with the most pairs, at most `limit`, in the order of `groups`."""
    kept = sorted(range(len(groups)), key=lambda i: -groups[i].pairs)[:limit]
    return [groups[i] for i in sorted(kept)]


def _lengths(references: Sequence[str]) -> list[str]:
    """Divide texts by length into three groups of about the same size, and return labels such as "5 to 8
    words".
    """
    words = np.array([len(clean(text).split()) for text in references])
    # "lower" takes lengths that occur, so that the ends of the ranges are whole numbers.
    third = np.searchsorted(np.quantile(words, [1 / 3, 2 / 3], method="lower"), words)
    names = {}
    for part in set(third.tolist()):
        low, high = int(words[third == part].min()), int(words[third == part].max())
        names[part] = f"{low} word{'s' * (low != 1)}" if low == high else f"{low} to {high} words"
    return [names[part] for part in third.tolist()]


def _in_order(label: str) -> tuple[float, str]:
    """Return a sort key: names such as "java" by the alphabet, then lengths such as "5 words" by number."""
    first = label.split()[0] if label else ""
    # The number first, because "10 words" sorts before "5 words" as text.
    return (float(first), label) if first.isascii() and first.isdigit() else (-1, label)


@dataclass(frozen=True)
class MetricResult:
    """The agreement of one metric with the human ratings of one set of pairs.

    Attributes:
        spearman: Spearman's rho between scores and mean ratings.
        p_value: Two-sided p-value of rho.
        low: Lower bound of rho's 95% interval, from a bootstrap over pairs.
        high: Upper bound of that interval.
        by_rater: The bounds of a second 95% interval of rho, which allows for other raters as well as other
            pairs. None if there are fewer than two raters or six pairs.
        kendall: Kendall's tau-b between scores and mean ratings.
        pearson: Pearson's r between scores and mean ratings.
        pairwise_accuracy: The share, from 0 to 1, of comparisons between two rated pairs in which the scores
            agree with the ratings: both put the same pair higher, or both see a tie.
        quantiles: The 5, 25, 50, 75 and 95% quantiles of the scores.
    """

    metric: str
    spearman: float
    p_value: float
    low: float
    high: float
    by_rater: tuple[float, float] | None
    kendall: float
    pearson: float
    pairwise_accuracy: float
    quantiles: list[float]


@dataclass(frozen=True)
class SetStudy:
    """The results of a study on one set of rated pairs, for m metrics.

    Attributes:
        agreement: The agreement between the raters; None if it is unknown, for example for a single rater.
        results: The results of the m metrics, the best first. `clusters`, `permutation`, `williams` and
            `between` have the metrics in the same order.
        clusters: The ranks of the m metrics.
        permutation: (m, m) p-values of a permutation test: entry (i, j) tests whether the metrics i and j
            correlate equally with the human ratings.
        williams: (m, m) p-values of Williams' test, which compares the same correlations as `permutation`.
        between: (m, m) Spearman's rho between the scores of the metrics i and j.
        variant_clusters: The ranks of the variants, like `clusters`.
        checkpoints: The number of training updates and the result of the untrained model and of each
            checkpoint.
        missing: The metrics that are unavailable on this set.
        words: The conclusions as sentences.
    """

    name: str
    pairs: int
    agreement: RaterAgreement | None
    results: list[MetricResult]
    clusters: list[int]
    permutation: Matrix
    williams: Matrix
    between: Matrix
    variants: list[MetricResult]
    variant_clusters: list[int]
    checkpoints: list[tuple[float, MetricResult]]
    groups: list[Group]
    missing: dict[str, str]
    words: list[str]


@dataclass(frozen=True)
class Study:
    """The results of a study on several sets; `missing` are the metrics that are unavailable on all sets."""

    sets: list[SetStudy]
    signatures: dict[str, str]
    missing: dict[str, str]
