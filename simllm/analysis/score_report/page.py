"""The page of the score report: its figures, the data of its table, and the page itself."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from simllm.analysis.comparison import Comparison
from simllm.analysis.judge import JudgeBias
from simllm.analysis.score_report.pairs import (
    LONGEST_SHOWN,
    ScoredPairs,
    choose_pairs,
    cut,
    cut_id,
    describe_choice,
    is_cut,
)
from simllm.analysis.score_report.sentences import (
    describe_high_scores,
    describe_scores,
    describe_trend,
    describe_word_search,
    first_numbers,
    group_means,
    length_name,
    mean_with_interval,
    number_ranges,
    write_sentences,
)
from simllm.array_types import Floats
from simllm.io import tables
from simllm.io.html_page import render
from simllm.io.svg_figure import BLUE, Figure, style, svg_element
from simllm.io.tables import format_count, format_number
from simllm.scoring.scores import DOUBTFUL, SIMILAR
from simllm.scoring.sentences import UNSUPPORTED
from simllm.stats.significance import rank_correlation

COLOURS = (BLUE, "#c1571b", "#4c8c4a", "#7d5ba6", "#b8860b", "#5f6b76", "#a8325e", "#2f7f86")
UNRELATED_TEXTS = "#848e9a"  # a contrast of 3:1 to the light and to the dark background
_POINTS = 2_000  # in a scatter plot; more only make the page larger
_FEW_POINTS = 300  # fewer points are drawn larger and darker
_SEED = 12345


def draw_distribution(scored: ScoredPairs) -> str:
    """Draw a histogram of the scores of the main metric or of each system, and one of unrelated texts."""
    columns = dict(scored.scores) if scored.has_systems else {"these pairs": scored.main}
    known = {name: values[~np.isnan(values)] for name, values in columns.items()}
    low = min([0.0, *(values.min() for values in known.values() if len(values))])
    high = max([1.0, *(values.max() for values in known.values() if len(values))])
    with style(font_size=10.5):  # the figure is small and its text large, so that a phone can show it
        figure = Figure(figsize=(6.4, 2.5))
        axes = figure.subplots()
        if scored.calibration is not None:
            points = np.array(scored.calibration.random)  # at evenly spaced percentiles: a sample of its own
            # A few extreme scores of unrelated texts must not squeeze the rest.
            low = min(low, float(np.quantile(points, 0.001)))
        bins = np.linspace(low, high, 41)
        keys: list[tuple[str, Any]] = []  # each name in the legend, and the histogram's shapes
        if scored.calibration is not None:
            weights = np.full(len(points), 100 / len(points))
            drawn = axes.hist(points, bins.tolist(), weights=weights, color=UNRELATED_TEXTS)
            keys.append(("unrelated texts", drawn[2]))
        for (name, values), colour in zip(known.items(), COLOURS * (1 + len(known) // 8), strict=False):
            weights = np.full(len(values), 100 / max(1, len(values)))
            # Filled histograms of several systems would hide each other.
            style_ = {"histtype": "step", "lw": 1.4} if scored.has_systems else {"alpha": 0.8}
            drawn = axes.hist(values, bins.tolist(), weights=weights, color=colour, **style_)
            keys.append((name, drawn[2]))
        axes.xaxis.set_major_formatter(_tick)
        axes.yaxis.set_major_formatter(_tick)
        axes.set_xlabel("score")
        axes.set_ylabel("% of the pairs")
        # With explicit keys, the legend also has names that begin with an underscore.
        axes.legend(
            [shapes[0] for _, shapes in keys],
            [name for name, _ in keys],
            frameon=False,
            ncols=1 + len(known) // 6,
        )
        axes.spines[["top", "right"]].set_visible(False)
        figure.set_layout_engine("tight")
    return svg_element(figure)


def draw_scatter(first: tuple[str, Floats], second: tuple[str, Floats]) -> str:
    """Draw the (n,) scores of two metrics, each with its name; the first metric is on the y-axis."""
    known = np.flatnonzero(~np.isnan(first[1]) & ~np.isnan(second[1]))
    if len(known) > _POINTS:
        known = np.random.default_rng(_SEED).choice(known, _POINTS, replace=False)
    with style():
        figure = Figure(figsize=(4.2, 3.4))
        axes = figure.subplots()
        size, alpha = (6, 0.8) if len(known) < _FEW_POINTS else (3, 0.4)
        axes.plot(second[1][known], first[1][known], ".", color=BLUE, ms=size, alpha=alpha, rasterized=True)
        axes.xaxis.set_major_formatter(_tick)
        axes.yaxis.set_major_formatter(_tick)
        axes.set_xlabel(second[0])
        axes.set_ylabel(first[0])
        axes.spines[["top", "right"]].set_visible(False)
        figure.set_layout_engine("tight")
    return svg_element(figure)


def _tick(value: float, _place: float) -> str:
    """Format a number at an axis without the zero before the decimal point, such as ".2"."""
    return re.sub(r"^(-?)0\.", r"\1.", f"{value:.6g}")


def page_data_json(scored: ScoredPairs, fields: Mapping[str, Sequence[str]]) -> str:
    """Format the pairs that the page shows, with names and thresholds, as JSON for a script element.

    `fields` has the n values of each field; the user of the page can show only the pairs with a certain
    value.
    """
    chosen = choose_pairs(scored)
    data = {
        "columns": list(scored.scores),
        "same": list(scored.same),
        "systems": list(scored.candidates) if scored.has_systems else [],
        "hasReferences": scored.has_references,
        "lowerIsBetter": scored.lower_is_better,
        "worstGoodScore": round(scored.worst_good_score, 4),
        "longest": LONGEST_SHOWN,
        "fields": list(fields),
        "pairs": [_pair(scored, fields, int(i)) for i in chosen],
        "total": len(scored),
    }
    text = json.dumps(tables.finite(data), separators=(",", ":"))  # ASCII: also no line separators of Unicode
    # A text such as "</script>" would end the script element.
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _pair(scored: ScoredPairs, fields: Mapping[str, Sequence[str]], i: int) -> dict[str, Any]:
    """Return the data of pair `i`, such as its texts and scores, as a JSON object."""
    return {
        "number": i + 1,
        **({"id": cut_id(scored.ids[i])} if scored.ids is not None else {}),
        "scores": [round(float(values[i]), 4) for values in scored.scores.values()],
        "same": [round(float(values[i]), 4) for values in scored.same.values()],
        "overlap": round(float(scored.overlap[i]), 4),
        "surprise": round(float(scored.surprise[i]), 4),
        "changed": [bool(values[i]) for values in scored.changed.values()],
        **_changed_by(scored, i),
        **({"cut": True} if is_cut(scored, i) else {}),
        "empty": bool(scored.empty[i]),
        **({"boilerplate": True} if scored.boilerplate[i] else {}),
        **({"unrelated": True} if scored.any_unrelated[i] else {}),
        **({"clauses": _clauses(scored.clause_notes[i])} if scored.clause_notes.get(i) else {}),
        **({"long": True} if scored.long[i] else {}),
        "groups": [values[i] for values in fields.values()],
        "candidates": [cut(texts[i]) for texts in scored.candidates.values()],
        "reference": cut(scored.references[i]),
        **({"code": cut(scored.code[i])} if scored.code is not None else {}),
    }


_SHOWN_CLAUSES = 3  # with the same note, of one pair


def _clauses(notes: Mapping[str, Sequence[str]]) -> list[tuple[str, list[str], int]]:
    """List each note with its first clauses, and the number of further clauses."""
    return [
        (note, list(texts[:_SHOWN_CLAUSES]), len(texts[_SHOWN_CLAUSES:])) for note, texts in notes.items()
    ]


def _changed_by(scored: ScoredPairs, i: int) -> dict[str, Any]:
    """Return {"changedBy": words of each column, None without a search}; {} if no column was searched."""
    words = [scored.changed_by.get(name, {}).get(i) for name in scored.changed]
    return {} if all(own is None for own in words) else {"changedBy": words}


def render_report(
    scored: ScoredPairs,
    command: str,
    comparison: Comparison | None = None,
    biases: Mapping[str, JudgeBias] | None = None,
) -> str:
    """Render the report of at least one pair as a self-contained HTML page that shows its command line.

    The comparison of the systems is None for a single system; `biases` are those of judges, by column.
    """
    means = [mean_with_interval(name, values) for name, values in scored.scores.items()]
    length = length_name(scored)
    while length in scored.groups:  # a field of the user's has this name
        length += " (counted)"
    lengths = [len(text.split()) for text in scored.references]
    fields = {**scored.groups, length: number_ranges(lengths)}
    return render(
        Path(__file__).with_name("pairs_page.html"),
        scored=scored,
        means=means,
        comparison=comparison,
        biases=biases or {},
        sentences=write_sentences(scored, means[0], comparison),
        distribution=draw_distribution(scored),
        scatters=_scatters(scored),
        groups={name: group_means(values, scored.main) for name, values in fields.items()},
        trends={
            **{
                name: describe_trend(
                    f"pairs with a larger number of {name}", first_numbers(values), scored.main
                )
                for name, values in scored.groups.items()
            },
            length: describe_trend(
                "longer references" if scored.has_references else "longer pieces of code",
                lengths,
                scored.main,
            ),
        },
        score=describe_scores(scored),
        length=length,
        pairs=format_count(len(scored), "pair"),
        choice=describe_choice(scored),
        explained=describe_word_search(scored),
        surprising=describe_high_scores(scored),
        similar=format_number(SIMILAR, 1),
        doubtful=format_number(DOUBTFUL, 1),
        unsupported=format_number(UNSUPPORTED, 2),
        divided=format_count(len(scored.clause_notes), "pair"),
        longest=LONGEST_SHOWN,
        has_cut=any(is_cut(scored, int(i)) for i in choose_pairs(scored)),
        data=page_data_json(scored, fields),
        command=command,
    )


def _scatters(scored: ScoredPairs) -> list[tuple[str, float, str]]:
    """Return the name of each further metric, its Spearman correlation with the main metric, and an SVG."""
    # The columns are then systems, not metrics.
    if scored.has_systems:
        return []
    main, *others = scored.scores.items()
    return [
        (name, rank_correlation(main[1], values).statistic, draw_scatter(main, (name, values)))
        for name, values in others
    ]
