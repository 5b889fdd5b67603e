"""Correlation with the ratings in parts of a rated set (RQ5): by language, by system, by length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simllm.evaluation.ratings import Ratings
from simllm.stats.correlation import rank_correlations

_FEWEST = 20  # pairs; a correlation of fewer says nothing


@dataclass(frozen=True)
class Group:
    """One part of a set, and each metric's Spearman correlation in it."""

    by: str  # language, system or length
    label: str
    pairs: int
    spearman: dict[str, float]


def groups(rated: Ratings, values: dict[str, NDArray[np.float64]]) -> list[Group]:
    """Correlate each metric's (n,) scores with the ratings in every part of twenty or more pairs.

    A property that only one such part has, such as a single language, is left out.
    """
    labels = {**rated.groups, "length": _lengths(rated.references)}
    found = []
    for by, given in labels.items():
        counts = Counter(given)
        parts = sorted((label for label in counts if counts[label] >= _FEWEST), key=_in_order)
        if len(parts) < 2:
            continue
        rows_of: dict[str, list[int]] = {label: [] for label in parts}
        for row, label in enumerate(given):
            if label in rows_of:
                rows_of[label].append(row)
        for label, rows in rows_of.items():
            scores = np.stack([of_metric[rows] for of_metric in values.values()])
            rho = rank_correlations(scores, np.broadcast_to(rated.values[rows], scores.shape))
            found.append(Group(by, label, len(rows), dict(zip(values, rho.tolist(), strict=True))))
    return found


def largest(parts: Sequence[Group], most: int) -> list[Group]:
    """Return the `most` parts with most pairs, in the given order."""
    kept = sorted(range(len(parts)), key=lambda i: -parts[i].pairs)[:most]
    return [parts[i] for i in sorted(kept)]


def _lengths(references: Sequence[str]) -> list[str]:
    """Label a third of the texts each by number of words; texts of one length stay together."""
    words = np.array([len(text.split()) for text in references])
    third = np.searchsorted(np.quantile(words, [1 / 3, 2 / 3], method="lower"), words)
    names = {}
    for part in set(third.tolist()):
        low, high = int(words[third == part].min()), int(words[third == part].max())
        names[part] = f"{low} word{'s' * (low != 1)}" if low == high else f"{low} to {high} words"
    return [names[part] for part in third.tolist()]


def _in_order(label: str) -> tuple[float, str]:
    """Sort key: labels that begin with a number go by the number, all others by name."""
    first = label.split()[0] if label else ""
    return (float(first), label) if first.isascii() and first.isdigit() else (-1, label)
