"""The words of the score report: means of groups of pairs, and sentences about the results."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simllm.analysis.comparison import Comparison
from simllm.analysis.score_report.pairs import LONGEST_EXPLAINED, ScoredPairs
from simllm.array_types import Floats
from simllm.io import tables
from simllm.io.tables import format_count, format_number, format_p_value
from simllm.model.config import ScoreScale
from simllm.scoring.scores import SIMILAR
from simllm.stats.intervals import mean_interval
from simllm.stats.significance import holm, rank_correlation, welch
from simllm.text_cleaning import encodable

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
        low: Lower bound of the mean's 95% interval (Student's t); None for fewer than 2, or for equal scores.
        difference: The mean score of the group minus that of all other pairs; None if no others exist.
        p: The p-value of Welch's t-test of this difference, corrected by Holm's method for the number of
            groups. None if fewer than three pairs are in the group, or fewer than three outside it, or if
            both have equal scores.
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
    known = values[~np.isnan(values)]
    mean = float(known.mean()) if len(known) else math.nan
    return GroupMean(name, len(known), mean, *tables.finite(mean_interval(known)))


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
            tested.append((len(found), welch(scores[inside & ~np.isnan(scores)], others).p))
        found.append(group)
    for (place, _), p in zip(tested, holm([p for _, p in tested]), strict=True):
        found[place] = replace(found[place], p=tables.finite(p))
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


def write_sentences(scored: ScoredPairs, mean: GroupMean, comparison: Comparison | None) -> list[str]:
    """Return the main results as English sentences; `mean` is that of the main metric."""
    n = len(scored)
    sentences = []
    if comparison is not None:
        sentences += [_on_the_best(comparison), *_on_the_scale_of_systems(scored)]
    else:
        text = f"The mean score of {format_count(n, 'pair')} is {format_number(mean.mean)}"
        if mean.low is not None and mean.high is not None:
            text += f" (95% interval {format_number(mean.low)} to {format_number(mean.high)})"
        sentences.append(text + ("; lower is better." if scored.lower_is_better else "."))
        sentences += _on_the_scale(scored)
    if changed := int(scored.any_changed.sum()):
        sentences.append(f"In {_share(changed, n)}, the texts are similar, but the meaning may have changed.")
    if found := int(scored.boilerplate.sum()):
        others = mean_with_interval("", scored.main[~scored.boilerplate])
        text = f"In {_share(found, n)}, the reference says nothing about the code"
        without = f"; without these pairs, the mean is {format_number(others.mean)}" if others.n else ""
        sentences.append(f"{text}{without}.")
    if empty := int(scored.empty.sum()):
        sentences.append(f"In {_share(empty, n)}, a text is empty after cleaning.")
    if long := int(scored.long.sum()):
        sentences.append(f"In {_share(long, n)}, a text is longer than the model reads.")
    elif scored.truncated:
        texts = "text is" if scored.truncated == 1 else "texts are"
        sentences.append(f"{scored.truncated:,} {texts} longer than the model reads.")
    return sentences


def length_name(scored: ScoredPairs) -> str:
    """Return the name of the number of words by which the page groups pairs."""
    return "words in the reference" if scored.has_references else "words in the code"


def describe_scores(scored: ScoredPairs) -> str:
    """Write sentences that explain what the scores compare, and which scores are high."""
    if scored.code is not None:
        also = ", and how similar it is to the reference" if scored.has_references else ""
        return f"how well the candidate (the summary to judge) describes the code{also}. Higher is better."
    text = (
        "how similar the candidate (the summary to judge) is to the reference (the summary to compare with)."
    )
    if scored.calibration is None:
        return f"{text} {'Lower' if scored.lower_is_better else 'Higher'} is better."
    usual = format_number(float(np.median(scored.calibration.random)), 2)
    return (
        f"{text} The highest score is 1: the texts say the same. Unrelated texts score around {usual}, "
        "so a score may be negative: the texts have as little in common as unrelated texts."
    )


def describe_high_scores(scored: ScoredPairs) -> str:
    """Write the note on the threshold between good and bad scores, such as "a score is high from .4".

    Two orders of the table of pairs need it: many words in common but a bad score, and the reverse.
    """
    good = "low up to" if scored.lower_is_better else "high from"
    bar = scored.worst_good_score
    shown = format_number(bar, 1) if bar == SIMILAR else f"{format_number(bar)}, the median"
    return f"There, a score is {good} {shown}. Pairs in which a text has no words are left out."


def describe_word_search(scored: ScoredPairs) -> str:
    """Write the sentence about the pairs whose changing words were searched for; "" if there are none."""
    n = sum(map(len, scored.changed_by.values()))
    changed = sum(int(flags.sum()) for flags in scored.changed.values())
    if n == 0:
        return ""
    which = "" if n == changed else f" among the {changed:,}"
    texts = "pair of texts" if n == 1 else "pairs of texts"
    return (
        f"these words are looked for in {n:,} {texts}{which} whose meaning may have "
        f"changed: those with the highest scores and at most {LONGEST_EXPLAINED} words in each text."
    )


def describe_trend(which: str, numbers: Sequence[int] | None, scores: Floats) -> str:
    """Write a sentence such as "Longer references score lower", with Spearman's correlation and its p-value.

    `numbers` has a property of each of n pairs, and `which` names the pairs for which it is larger. The
    sentence is empty if the property is not a number (None), or if the correlation is undefined.
    """
    if numbers is None:
        return ""
    rank = {number: i for i, number in enumerate(sorted(set(numbers)))}  # the numbers may be very large
    test = rank_correlation(np.array([rank[number] for number in numbers], float), scores)
    rho, p = test.statistic, test.p
    if math.isnan(rho):
        return ""
    found = f"(Spearman's \u03c1 = {format_number(rho)}, p {format_p_value(p, sign=True)})"
    if p < 0.05:
        return f"{which[0].upper()}{which[1:]} score {'higher' if rho > 0 else 'lower'} {found}."
    return f"There is no sign that {which} score higher or lower {found}."


def _on_the_best(comparison: Comparison) -> str:
    """Write a sentence about the system with the highest mean score, and whether its lead may be chance."""
    best = max(comparison.systems, key=lambda system: system.mean)
    text = f"{best.name} has the highest mean score, {format_number(best.mean)}"
    own = [one for one in comparison.differences if best.name in (one.a, one.b)]
    if len(own) < len(comparison.systems) - 1:  # only a baseline was compared with the others
        return f"{text}."
    p = max(one.p for one in own)  # the lead is certain only over every other system
    shown = f"(p {format_p_value(p, sign=True)})"
    if p < 0.05:
        return f"{text}. Its lead over every other system is more than chance {shown}."
    return f"{text}, but its lead may be chance {shown}."


def _on_the_scale(scored: ScoredPairs) -> list[str]:
    """Write sentences that compare a single system with unrelated texts, if calibrated."""
    scale, bar, single = scored.calibration, scored.unrelated_below, scored.single
    if scale is None or bar is None or not single.any():
        return []
    low = int(scored.any_unrelated.sum())
    usual = f"below {format_number(bar)}, as 95% of unrelated texts do"
    they = "it scores" if low == 1 else "they score"
    unrelated = (
        f"{_share(low, int(single.sum()))} may be of unrelated texts: {they} {usual}. "
        'The filter "score like unrelated texts" shows such pairs.'
        if low
        else f"{_none(single)} scores {usual}."
    )
    return [
        f"The mean{_of_single(single)} is above {_percentile_of_mean(scale, scored.main[single])} of the "
        "scores of unrelated texts.",
        unrelated,
    ]


def _on_the_scale_of_systems(scored: ScoredPairs) -> list[str]:
    """Write sentences that compare each system with unrelated texts, if calibrated."""
    scale, bar, single = scored.calibration, scored.unrelated_below, scored.single
    if scale is None or bar is None or not single.any():
        return []
    return [
        *(
            f"{name}: the mean{_of_single(single)} is above {_percentile_of_mean(scale, values[single])} of "
            f"the scores of unrelated texts. {_count_below(values, bar, single)} below {format_number(bar)}."
            for name, values in scored.scores.items()
        ),
        f"95% of unrelated texts score below {format_number(bar)}: texts with such scores may be unrelated.",
    ]


def _of_single(single: NDArray[np.bool_]) -> str:
    """Say of which pairs a mean is, if not of all."""
    count = format_count(int(single.sum()), "pair")
    return "" if single.all() else f" of the {count} of single sentences"


def _percentile_of_mean(scale: ScoreScale, values: Floats) -> str:
    """Return the percentage of random pairs that score below the mean of (n,) scores, such as "98.2%"."""
    # "100.0%" would claim more than a sample of random pairs can show.
    return f"{min(float(scale.percentile(np.array([values.mean()]))[0]), 99.9):.1f}%"


def _count_below(values: Floats, bar: float, single: NDArray[np.bool_]) -> str:
    """Write the start of a sentence, such as "12 pairs (3%) score"; the caller adds "below" and the bar."""
    low = int((values[single] < bar).sum())
    if low == 0:
        return f"{_none(single)} scores"
    return f"{_share(low, int(single.sum()))} score{'s' if low == 1 else ''}"


def _none(single: NDArray[np.bool_]) -> str:
    return "No pair" if single.all() else "None of these pairs"


def _share(count: int, n: int) -> str:
    """Describe a count of pairs and its share of all n pairs, such as "12 pairs (3%)"."""
    percent = 100 * count / n
    shown = "less than 1%" if 0 < percent < 1 else f"{percent:.0f}%"
    return f"{format_count(count, 'pair')} ({shown})"
