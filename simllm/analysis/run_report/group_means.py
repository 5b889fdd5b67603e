"""Means of groups of pairs, and tests of whether a group differs from all other pairs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simllm.metrics.protocol import Floats
from simllm.stats.multiple_testing import holm

LENGTH = "words in the reference"
_MOST = 25  # groups of one field; smaller groups are joined
_FEWEST = 3  # pairs of a group that is tested


@dataclass(frozen=True)
class GroupMean:
    """The mean score of a group of pairs, compared with the mean of all other pairs.

    Attributes:
        name: The value of the field.
        n: Number of pairs.
        mean: The mean score.
        low: Lower bound of the 95% interval of the mean (Student's t); None with one pair.
        high: Upper bound of the interval; None with one pair.
        difference: The mean minus that of all other pairs; None without others.
        p: The p-value of Welch's t-test of this difference, corrected for the number of groups of the field
            by Holm's method; None for a group with fewer than three pairs.
    """

    name: str
    n: int
    mean: float
    low: float | None
    high: float | None
    difference: float | None = None
    p: float | None = None


def mean_with_interval(name: str, values: Floats) -> GroupMean:
    """Return the mean of n scores with its 95% interval; scores that are NaN do not count."""
    from scipy.stats import t

    known = values[~np.isnan(values)]
    n = len(known)
    if n < 2:
        return GroupMean(name, n, float(known.mean()) if n else float("nan"), None, None)
    mean, error = float(known.mean()), float(known.std(ddof=1)) / n**0.5
    width = float(t.ppf(0.975, n - 1)) * error
    return GroupMean(name, n, mean, mean - width, mean + width)


def group_means(values: Sequence[str], scores: Floats) -> list[GroupMean]:
    """Compare the groups of pairs that have the same value of a field.

    Args:
        values: The value of each of n pairs.
        scores: (n,) scores.

    Returns:
        The groups in the order of their names; lengths such as "4 to 6" in the order of their numbers. All
        groups beyond the 25 largest are one group.
    """
    sizes = Counter(values)
    kept = {name for name, _ in sizes.most_common(_MOST)}
    rest = f"{len(sizes) - len(kept)} smaller groups"
    names = np.array([value if value in kept else rest for value in values], dtype=object)
    found: list[GroupMean] = []
    tested: list[tuple[int, float]] = []
    for name in sorted({*names}, key=lambda name: (name == rest, _order(name))):
        inside = names == name
        group = mean_with_interval(name, scores[inside])
        others = scores[~inside & ~np.isnan(scores)]
        if len(others):
            group = replace(group, difference=group.mean - float(others.mean()))
        if group.n >= _FEWEST and len(others) >= _FEWEST:
            tested.append((len(found), _welch(scores[inside], others)))
        found.append(group)
    for (place, _), p in zip(tested, holm([p for _, p in tested]), strict=True):
        found[place] = replace(found[place], p=p)
    return found


def number_ranges(numbers: Sequence[int]) -> list[str]:
    """Sort n whole numbers into up to four ranges with similar counts.

    Returns:
        The range of each number, such as "4 to 6".
    """
    edges = np.unique(np.quantile(numbers, [0, 0.25, 0.5, 0.75, 1]).astype(int))
    starts = edges[:-1] if len(edges) > 1 else edges
    ends = [*(starts[1:] - 1), edges[-1]]
    names = [f"{a}" if a == b else f"{a} to {b}" for a, b in zip(starts, ends, strict=True)]
    return [names[place] for place in np.searchsorted(starts, numbers, side="right") - 1]


def _order(name: str) -> tuple[float, str]:
    """Return a sorting key: by the number with which a name begins, otherwise by the name."""
    first = name.partition(" ")[0]
    return (float(first), name) if re.fullmatch(r"-?[0-9]+", first) else (float("inf"), name)


def _welch(a: Floats, b: Floats) -> float:
    """Return the p-value of Welch's t-test; 1 if there is no spread to compare a difference with."""
    from scipy.stats import ttest_ind

    a = a[~np.isnan(a)]
    if np.ptp(a) == np.ptp(b) == 0:
        return 1.0
    return float(ttest_ind(a, b, equal_var=False).pvalue)
