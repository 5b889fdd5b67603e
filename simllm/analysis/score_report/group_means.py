"""Mean scores of groups of text pairs; a t-test compares each group with all pairs outside the group."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from simllm.array_types import Floats
from simllm.io.number_format import format_count
from simllm.stats.multiple_testing import holm
from simllm.text_cleaning import encodable

LENGTH = "words in the reference"
_FEW = 12  # up to so many different whole numbers, each number is a group; more numbers become ranges
_MOST = 25  # groups for one field; all smaller groups are joined into one more group
_NUMBER = "-?[0-9]{1,4300}"  # Python refuses to convert texts of more digits, which are names here
_FEWEST = 3  # pairs that a group must have to be tested


@dataclass(frozen=True)
class GroupMean:
    """The mean score of a group of pairs, compared with the mean score of all other pairs.

    Attributes:
        name: The name of the group, such as "java".
        n: Number of pairs in the group whose score is not NaN.
        mean: The mean score of the group; NaN if n is 0.
        low: Lower bound of the mean's 95% interval (Student's t); None if n is less than 2.
        difference: The mean score of the group minus that of all other pairs; None if no others exist.
        p: The p-value of Welch's t-test of this difference, corrected by Holm's method for the number of
            groups. None if fewer than three pairs are in the group, or fewer than three outside it.
    """

    name: str
    n: int
    mean: float
    low: float | None
    high: float | None
    difference: float | None = None
    p: float | None = None


def mean_with_interval(name: str, values: Floats) -> GroupMean:
    """Compute the mean of (n,) scores without NaN, and its 95% interval; `difference` and `p` stay None."""
    from scipy.stats import t

    known = values[~np.isnan(values)]
    n = len(known)
    if n < 2:
        return GroupMean(name, n, float(known.mean()) if n else float("nan"), None, None)
    mean, error = float(known.mean()), float(known.std(ddof=1)) / n**0.5
    width = float(t.ppf(0.975, n - 1)) * error
    return GroupMean(name, n, mean, mean - width, mean + width)


def group_means(values: Sequence[str], scores: Floats) -> list[GroupMean]:
    """Group n pairs by the n values of a field, and compare each group with all other pairs.

    Groups are sorted by name, or by the number at the beginning of the name. All but the 25 largest groups
    are joined into one, which comes last.
    """
    sizes = Counter(values)
    kept = {name for name, _ in sizes.most_common(_MOST)}
    rest = format_count(len(sizes) - len(kept), "smaller group")
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


def group_names(values: Sequence[Any]) -> list[str]:
    """Return the name of each pair's group from the values of a JSON field.

    The name is the value as text, or a range such as "4 to 6" if there are more than 12 different whole
    numbers.
    """
    # A bool is an int in Python, but true and false are names of groups.
    are_numbers = all(isinstance(value, int) and not isinstance(value, bool) for value in values)
    if are_numbers and len({*values}) > _FEW:
        return number_ranges(values)
    return [encodable(value if isinstance(value, str) else json.dumps(value)) for value in values]


def number_ranges(numbers: Sequence[int]) -> list[str]:
    """Assign n whole numbers to up to four ranges of about equal size, with names such as "4 to 6"."""
    ordered = sorted(numbers)  # numbers of JSON may be too large for numpy
    edges = sorted({_quartile(ordered, part) for part in range(5)})
    starts = edges[:-1] or edges
    ends = [*(start - 1 for start in starts[1:]), edges[-1]]
    names = [f"{a}" if a == b else f"{a} to {b}" for a, b in zip(starts, ends, strict=True)]
    return [names[bisect_right(starts, number) - 1] for number in numbers]


def first_numbers(values: Sequence[str]) -> list[int] | None:
    """Convert values such as "4" and "4 to 6" to their first number; None if a value has another form."""
    found = [re.fullmatch(rf"({_NUMBER})( to {_NUMBER})?", value) for value in values]
    return None if None in found else [int(match[1]) for match in found if match]


def _quartile(ordered: Sequence[int], part: int) -> int:
    """Return quartile 0 (the smallest) to 4 (the largest) of increasing whole numbers, rounded down."""
    place, rest = divmod(part * (len(ordered) - 1), 4)
    return ordered[place] + ((ordered[place + 1] - ordered[place]) * rest // 4 if rest else 0)


def _order(name: str) -> tuple[float, str]:
    """Return the sorting key of a group's name: names that begin with a number come first, by this number."""
    first = name.partition(" ")[0]
    return (float(first), name) if re.fullmatch(_NUMBER, first) else (float("inf"), name)


def _welch(a: Floats, b: Floats) -> float:
    """Return the p-value of Welch's t-test of two samples; NaN values in the first do not count."""
    from scipy.stats import ttest_ind

    a = a[~np.isnan(a)]
    # The test is undefined if each sample has one repeated value.
    if np.ptp(a) == np.ptp(b) == 0:
        return 1.0
    return float(ttest_ind(a, b, equal_var=False).pvalue)
