"""Correlation with the ratings in groups of a rated set, by language, system or length (RQ5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simllm.evaluation.ratings import Ratings
from simllm.stats.correlation import rank_correlations

_FEWEST = 20  # pairs in a group; the correlation of fewer is too uncertain


@dataclass(frozen=True)
class Group:
    """A group of rated pairs, and Spearman's rho of each metric in it.

    Attributes:
        by: The property that defines the group: language, system or length.
        label: The value of the property.
        pairs: Number of pairs.
        spearman: Spearman's rho by metric.
    """

    by: str
    label: str
    pairs: int
    spearman: dict[str, float]


def correlate_groups(rated: Ratings, values: dict[str, NDArray[np.float64]]) -> list[Group]:
    """Correlate scores with ratings in each group of at least twenty pairs.

    A property with fewer than two such groups, such as a single language, is left out.

    Args:
        rated: n rated pairs.
        values: (n,) scores by metric.
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


def largest_groups(parts: Sequence[Group], most: int) -> list[Group]:
    """Return the `most` groups with the most pairs, in their original order."""
    kept = sorted(range(len(parts)), key=lambda i: -parts[i].pairs)[:most]
    return [parts[i] for i in sorted(kept)]


def _lengths(references: Sequence[str]) -> list[str]:
    """Divide texts into thirds by their number of words, and label each text with its range.

    Texts of the same length have the same label.
    """
    words = np.array([len(text.split()) for text in references])
    third = np.searchsorted(np.quantile(words, [1 / 3, 2 / 3], method="lower"), words)
    names = {}
    for part in set(third.tolist()):
        low, high = int(words[third == part].min()), int(words[third == part].max())
        names[part] = f"{low} word{'s' * (low != 1)}" if low == high else f"{low} to {high} words"
    return [names[part] for part in third.tolist()]


def _in_order(label: str) -> tuple[float, str]:
    """Return a sort key: labels that begin with a number are sorted by it, all others by name."""
    first = label.split()[0] if label else ""
    return (float(first), label) if first.isascii() and first.isdigit() else (-1, label)
