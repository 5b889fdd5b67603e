"""Correlation of metrics with human ratings, computed separately for groups of text pairs.

A pair has a candidate, such as a generated summary, and a reference. The pairs are grouped by the programming
language, by the system that wrote the candidate, and by the length of the reference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simllm.evaluation.ratings import Ratings
from simllm.stats.spearman import rank_correlations
from simllm.text_cleaning import clean

_FEWEST = 20  # pairs in a group; the correlation over fewer pairs is too uncertain


@dataclass(frozen=True)
class Group:
    """A group of rated text pairs, such as the pairs of one language, with each metric's correlation.

    A pair has a candidate, such as a generated summary, and a reference.

    Attributes:
        by: The property that all pairs of the group share: "language", "system" (which wrote the candidates)
            or "length" (of the references).
        label: The value of the property, such as "java" or "5 to 8 words".
        pairs: Number of pairs in the group.
        spearman: Spearman's rho between scores and ratings, by metric name.
    """

    by: str
    label: str
    pairs: int
    spearman: dict[str, float]


def correlate_groups(rated: Ratings, values: dict[str, NDArray[np.float64]]) -> list[Group]:
    """Correlate metrics' scores with human ratings in groups of pairs.

    The pairs are grouped by three properties: the language, the system that wrote the candidate, and the
    length of the reference. Groups of fewer than twenty pairs are left out. If fewer than two groups of a
    property remain, the property is left out.

    Args:
        rated: n pairs of candidate and reference, with human ratings.
        values: A dict from the name of each metric to its (n,) scores.

    Returns:
        The groups by language, then those by system, then those by length.
    """
    all_labels = {**rated.groups, "length": _lengths(rated.references)}
    groups = []
    for by, labels in all_labels.items():
        counts = Counter(labels)
        parts = sorted((label for label in counts if counts[label] >= _FEWEST), key=_in_order)
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
    """Return the groups with the most text pairs, in the order of `groups`.

    A group has the rated text pairs of one programming language, for example.

    Args:
        groups: The groups.
        limit: The largest number of groups to return.
    """
    kept = sorted(range(len(groups)), key=lambda i: -groups[i].pairs)[:limit]
    return [groups[i] for i in sorted(kept)]


def _lengths(references: Sequence[str]) -> list[str]:
    """Divide texts by length into three groups with about equally many texts.

    Args:
        references: n texts.

    Returns:
        For each text, the range of its length, such as "5 to 8 words".
    """
    words = np.array([len(clean(text).split()) for text in references])
    third = np.searchsorted(np.quantile(words, [1 / 3, 2 / 3], method="lower"), words)
    names = {}
    for part in set(third.tolist()):
        low, high = int(words[third == part].min()), int(words[third == part].max())
        names[part] = f"{low} word{'s' * (low != 1)}" if low == high else f"{low} to {high} words"
    return [names[part] for part in third.tolist()]


def _in_order(label: str) -> tuple[float, str]:
    """Return a sort key for the labels of groups.

    Names, such as "java", come first, in alphabetical order. Then come lengths, such as "5 words", by number.
    """
    first = label.split()[0] if label else ""
    return (float(first), label) if first.isascii() and first.isdigit() else (-1, label)
