"""Rendering of a report as an HTML page.

The template of the page shows the main results as sentences, tables and figures. Its script shows the pairs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from simllm.analysis.comparison import Comparison
from simllm.analysis.run_report.group_means import (
    LENGTH,
    GroupMean,
    first_numbers,
    group_means,
    mean_with_interval,
    number_ranges,
)
from simllm.analysis.run_report.pair_sample import LONGEST_EXPLAINED, choose_pairs, describe_choice
from simllm.analysis.run_report.score_figures import draw_distribution, draw_scatter
from simllm.analysis.run_report.scored_run import ScoredRun
from simllm.io import tables
from simllm.io.html_page import render
from simllm.io.number_format import format_count, format_number, format_p_value
from simllm.metrics.protocol import Floats
from simllm.model.score_scale import ScoreScale
from simllm.scoring.scores import SAME, SIMILAR

_NONE = "\u2013"  # a dash, in place of a missing number
_LONGEST = 2_000  # characters of a text that the page shows


def render_report(run: ScoredRun, command: str, comparison: Comparison | None = None) -> str:
    """Render the report of scored pairs as a self-contained HTML page.

    Args:
        run: n scored pairs, at least one.
        command: The command line, to be shown on the page.
        comparison: The comparison of the systems; None for a single system.

    Returns:
        The HTML text of the page.
    """
    means = [mean_with_interval(name, values) for name, values in run.scores.items()]
    length = LENGTH
    while length in run.groups:  # a field of the user's has this name
        length += " (counted)"
    lengths = [len(text.split()) for text in run.references]
    fields = {**run.groups, length: number_ranges(lengths)}
    return render(
        Path(__file__).with_name("pairs_page.html"),
        run=run,
        means=means,
        comparison=comparison,
        sentences=write_sentences(run, means[0], comparison),
        distribution=draw_distribution(run),
        scatters=_scatters(run),
        groups={name: group_means(values, run.main) for name, values in fields.items()},
        trends={
            **{
                name: _trend(f"pairs with a larger number of {name}", first_numbers(values), run.main)
                for name, values in run.groups.items()
            },
            length: _trend("longer references", lengths, run.main),
        },
        score=_on_the_score(run),
        length=length,
        pairs=format_count(len(run), "pair"),
        choice=describe_choice(run),
        explained=_on_changing_words(run),
        surprising=_on_high_scores(run),
        similar=format_number(SIMILAR, 1),
        likely=format_number(SAME, 1),
        longest=_LONGEST,
        has_cut=any(_is_cut(run, int(i)) for i in choose_pairs(run)),
        data=_script_data(run, fields),
        number=lambda value: _NONE if value is None else format_number(value),
        probability=lambda p: _NONE if p is None else format_p_value(p),
        command=command,
    )


def write_sentences(run: ScoredRun, mean: GroupMean, comparison: Comparison | None) -> list[str]:
    """Write the main results as English sentences, one in each item of the list.

    Args:
        run: The scored pairs.
        mean: The mean score by the main metric (the first column of scores); not used for several systems.
        comparison: The comparison of the systems; None for a single system.
    """
    n = len(run)
    sentences = []
    if comparison is not None:
        sentences += [_on_the_best(comparison), *_on_the_scale_of_systems(run)]
    else:
        text = f"The mean score of {format_count(n, 'pair')} is {format_number(mean.mean)}"
        if mean.low is not None and mean.high is not None:
            text += f" (95% interval {format_number(mean.low)} to {format_number(mean.high)})"
        sentences.append(text + ("; lower is better." if run.lower_is_better else "."))
        sentences += _on_the_scale(run)
    if changed := int(run.any_changed.sum()):
        sentences.append(f"In {_share(changed, n)}, the texts are similar, but the meaning may have changed.")
    if empty := int(run.empty.sum()):
        sentences.append(f"In {_share(empty, n)}, a text is empty after cleaning.")
    if long := int(run.long.sum()):
        sentences.append(f"In {_share(long, n)}, a text is longer than the model reads.")
    elif run.truncated:
        texts = "text is" if run.truncated == 1 else "texts are"
        sentences.append(f"{run.truncated:,} {texts} longer than the model reads.")
    return sentences


def _on_the_best(comparison: Comparison) -> str:
    """Write a sentence about the system with the highest mean score, and whether its lead may be chance."""
    best = max(comparison.systems, key=lambda system: system.mean)
    text = f"{best.name} has the highest mean score, {format_number(best.mean)}"
    own = [one for one in comparison.differences if best.name in (one.a, one.b)]
    p = max(max(one.bootstrap_p, one.permutation_p) for one in own)
    shown = f"(p {format_p_value(p, sign=True)})"
    if p < 0.05:
        return f"{text}. Its lead over every other system is more than chance {shown}."
    return f"{text}, but its lead may be chance {shown}."


def _on_the_score(run: ScoredRun) -> str:
    """Write sentences that explain the scores: what they compare, and which scores are high."""
    text = (
        "how similar the candidate (the summary to judge) is to the reference (the summary to compare with)."
    )
    if run.calibration is None:
        return f"{text} {'Lower' if run.lower_is_better else 'Higher'} is better."
    usual = format_number(float(np.median(run.calibration.random)), 2)
    return (
        f"{text} The highest score is 1: the texts say the same. Unrelated texts score around {usual}, "
        "so a score may be negative: the texts have as little in common as unrelated texts."
    )


def _good_from(run: ScoredRun) -> float:
    """Return the lowest good score (or the highest, if lower scores are better), for the orders of the page.

    The learned metric has a fixed bar for similar texts. Among other metrics, scores better than the median
    are good.
    """
    is_learned = run.calibration is not None or next(iter(run.scores)) in run.same
    return SIMILAR if is_learned else float(np.median(run.ranking))


def _on_high_scores(run: ScoredRun) -> str:
    """Write sentences about the pairs that the two orders by words and score leave out."""
    good = "low up to" if run.lower_is_better else "high from"
    bar = _good_from(run)
    shown = format_number(bar, 1) if bar == SIMILAR else f"{format_number(bar)}, the median"
    return f"There, a score is {good} {shown}. Pairs in which a text has no words are left out."


def _trend(which: str, numbers: Sequence[int] | None, scores: Floats) -> str:
    """Write a sentence on whether pairs with a larger number in a field score higher or lower.

    For example: "Longer references score lower", followed by Spearman's correlation and its p-value.

    Args:
        which: The words in the sentence that name the pairs with larger numbers, such as "longer references".
        numbers: The numbers in the field, one for each of n pairs; None if the field has no numbers.
        scores: (n,) scores by the main metric, or their means over several systems.

    Returns:
        The sentence; empty if there are no numbers, or if the correlation is undefined.
    """
    if numbers is None:
        return ""
    rank = {number: i for i, number in enumerate(sorted(set(numbers)))}  # the numbers may be very large
    rho, p = _spearman(np.array([rank[number] for number in numbers], float), scores)
    if math.isnan(rho):
        return ""
    found = f"(Spearman's \u03c1 = {format_number(rho)}, p {format_p_value(p, sign=True)})"
    if p < 0.05:
        return f"{which[0].upper()}{which[1:]} score {'higher' if rho > 0 else 'lower'} {found}."
    return f"There is no sign that {which} score higher or lower {found}."


def _on_the_scale(run: ScoredRun) -> list[str]:
    """Write sentences that compare the scores with those of unrelated texts, and estimate human ratings.

    The list is empty if the model has no calibration (map from scores to percentiles and ratings).
    """
    scale, bar = run.calibration, run.unrelated_below
    if scale is None or bar is None:
        return []
    low = int(run.any_unrelated.sum())
    usual = f"below {format_number(bar)}, as 95% of unrelated texts do"
    they = "it scores" if low == 1 else "they score"
    unrelated = (
        f"{_share(low, len(run))} may be of unrelated texts: {they} {usual}. "
        'The filter "score like unrelated texts" shows such pairs.'
        if low
        else f"No pair scores {usual}."
    )
    return [
        f"The mean is above {_percentile_of_mean(scale, run.main)} of the scores of unrelated texts.",
        unrelated,
        f"On average, people would rate the similarity {scale.rating(run.main).mean():.1f} "
        f"(estimated on a scale {_rating_range(scale)}).",
    ]


def _on_the_scale_of_systems(run: ScoredRun) -> list[str]:
    """Write sentences that compare each system's scores with those of unrelated texts, and estimate ratings.

    The ratings are those that people would give to the system's candidates, on average. The list is empty if
    the model has no calibration (map from scores to percentiles and ratings).
    """
    scale, bar = run.calibration, run.unrelated_below
    if scale is None or bar is None:
        return []
    return [
        *(
            f"{name}: the mean is above {_percentile_of_mean(scale, values)} of the scores of unrelated "
            f"texts. The estimated human rating is {scale.rating(values).mean():.1f}. "
            f"{_count_below(values, bar)} below {format_number(bar)}."
            for name, values in run.scores.items()
        ),
        f"95% of unrelated texts score below {format_number(bar)}: texts with such scores may be unrelated.",
        f"The estimated ratings are those of the similarity by people, on a scale {_rating_range(scale)}.",
    ]


def _percentile_of_mean(scale: ScoreScale, values: Floats) -> str:
    """Describe the share of unrelated texts that score below the mean of (n,) scores, such as "98.2%"."""
    return f"{min(float(scale.percentile(np.array([values.mean()]))[0]), 99.9):.1f}%"


def _count_below(values: Floats, bar: float) -> str:
    """Count the (n,) scores below a threshold, and write the start of a sentence about them.

    An example is "12 pairs (3%) score". The caller appends "below" and the threshold.
    """
    low = int((values < bar).sum())
    if low == 0:
        return "No pair scores"
    return f"{_share(low, len(values))} score{'s' if low == 1 else ''}"


def _rating_range(scale: ScoreScale) -> str:
    """Name the lowest and the highest rating of the model's scale."""
    return f"from {scale.ratings[0]:.1f} to {scale.ratings[-1]:.1f}"


def _share(count: int, n: int) -> str:
    """Describe a count of pairs and its share of all n pairs, such as "12 pairs (3%)"."""
    percent = 100 * count / n
    shown = "less than 1%" if 0 < percent < 1 else f"{percent:.0f}%"
    return f"{format_count(count, 'pair')} ({shown})"


def _scatters(run: ScoredRun) -> list[tuple[str, float, str]]:
    """Draw scatter plots of the main metric's scores against those of each other metric.

    Returns:
        For each other metric: its name, Spearman's correlation with the main metric, and the figure as SVG.
        The list is empty for several systems.
    """
    if run.has_systems:
        return []
    main, *others = run.scores.items()
    return [
        (name, _spearman(main[1], values)[0], draw_scatter(main, (name, values))) for name, values in others
    ]


def _spearman(a: Floats, b: Floats) -> tuple[float, float]:
    """Return Spearman's correlation of two columns of numbers and its p-value; both NaN if undefined.

    Args:
        a: (n,) numbers, such as the scores by one metric. Pairs with NaN in either column do not count.
        b: (n,) numbers, such as the scores by another metric.
    """
    from scipy.stats import spearmanr

    known = ~np.isnan(a) & ~np.isnan(b)
    a, b = a[known], b[known]
    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return math.nan, math.nan
    found = spearmanr(a, b)
    return float(found.statistic), float(found.pvalue)


def _script_data(run: ScoredRun, fields: Mapping[str, Sequence[str]]) -> str:
    """Format the data of the report as JSON, escaped for a script element of the HTML page.

    The data are the pairs that the page shows, and the names of the columns, systems and fields.

    Args:
        run: n scored pairs.
        fields: A dict from each field's name to its n values, by which the page can filter the pairs.
    """
    chosen = choose_pairs(run)
    data = {
        "columns": list(run.scores),
        "same": list(run.same),
        "systems": list(run.candidates) if run.has_systems else [],
        "lowerIsBetter": run.lower_is_better,
        "goodFrom": round(_good_from(run), 4),
        "longest": _LONGEST,
        "fields": list(fields),
        "pairs": [_pair(run, fields, int(i)) for i in chosen],
        "total": len(run),
    }
    text = json.dumps(tables.finite(data), separators=(",", ":"))  # ASCII: also no line separators of Unicode
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _pair(run: ScoredRun, fields: Mapping[str, Sequence[str]], i: int) -> dict[str, Any]:
    """Return the data of pair `i` (counted from 0) for the page's script, as a JSON object."""
    return {
        "number": i + 1,
        **({"id": _exact_id(run.ids[i])} if run.ids is not None else {}),
        "scores": [round(float(values[i]), 4) for values in run.scores.values()],
        "same": [round(float(values[i]), 4) for values in run.same.values()],
        "overlap": round(float(run.overlap[i]), 4),
        "surprise": round(float(run.surprise[i]), 4),
        "changed": [bool(values[i]) for values in run.changed.values()],
        **_changed_by(run, i),
        **({"cut": True} if _is_cut(run, i) else {}),
        "empty": bool(run.empty[i]),
        **({"unrelated": True} if run.any_unrelated[i] else {}),
        **({"long": True} if run.long[i] else {}),
        "groups": [values[i] for values in fields.values()],
        "candidates": [_cut(texts[i]) for texts in run.candidates.values()],
        "reference": _cut(run.references[i]),
    }


def _on_changing_words(run: ScoredRun) -> str:
    """Write a note that tells which pairs of texts were searched for words that change the meaning.

    Such words make the candidate differ in meaning from the reference. The note is empty if no pairs were
    searched.
    """
    n = sum(map(len, run.changed_by.values()))
    changed = sum(int(flags.sum()) for flags in run.changed.values())
    if n == 0:
        return ""
    which = "" if n == changed else f" among the {changed:,}"
    texts = "pair of texts" if n == 1 else "pairs of texts"
    return (
        f"these words are looked for in {n:,} {texts}{which} whose meaning may have "
        f"changed: those with the highest scores and at most {LONGEST_EXPLAINED} words in each text."
    )


def _changed_by(run: ScoredRun, i: int) -> dict[str, Any]:
    """Return the words that make the candidate of pair `i` differ in meaning from its reference.

    The result is one part of the pair's JSON object.

    Returns:
        A dict with the key "changedBy". Its value is a list with one element for each column of
        `run.changed` (a metric or a system): the words found for this column, or None if the pair was not
        searched for it. If the pair was not searched for any column, the dict is empty.
    """
    words = [run.changed_by.get(name, {}).get(i) for name in run.changed]
    return {} if all(own is None for own in words) else {"changedBy": words}


def _is_cut(run: ScoredRun, i: int) -> bool:
    """Return whether the page shows only the beginning of a text of pair `i`."""
    return any(len(texts[i]) > _LONGEST for texts in (run.references, *run.candidates.values()))


def _exact_id(value: Any) -> Any:
    """Return a pair's id for the page. Whole numbers from 2^53 on become text, as JavaScript rounds them."""
    return str(value) if isinstance(value, int) and abs(value) >= 2**53 else value


def _cut(text: str) -> str:
    """Cut a text after 2,000 characters; append the full length to a text that was cut."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} … ({len(text):,} characters)"
