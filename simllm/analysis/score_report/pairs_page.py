"""Rendering of the score report as an HTML page.

The template of the page shows the main results as sentences, tables and figures. The script shows the pairs.
"""

from __future__ import annotations

from pathlib import Path

from simllm.analysis.comparison import Comparison
from simllm.analysis.score_report.cut_texts import LONGEST_SHOWN, is_cut
from simllm.analysis.score_report.group_means import (
    LENGTH,
    first_numbers,
    group_means,
    mean_with_interval,
    number_ranges,
)
from simllm.analysis.score_report.page_data_json import page_data_json
from simllm.analysis.score_report.report_plots import draw_distribution, draw_scatter
from simllm.analysis.score_report.report_sentences import (
    describe_high_scores,
    describe_scores,
    describe_trend,
    describe_word_search,
    write_sentences,
)
from simllm.analysis.score_report.sampled_pairs import choose_pairs, describe_choice
from simllm.analysis.score_report.scored_pairs import ScoredPairs
from simllm.analysis.score_report.spearman_p_value import spearman_with_p
from simllm.io.html_page import render
from simllm.io.number_format import format_count, format_number, format_p_value
from simllm.scoring.changed_meaning import DOUBTFUL, SIMILAR

_NONE = "\u2013"  # a dash, in place of a missing number


def render_report(scored: ScoredPairs, command: str, comparison: Comparison | None = None) -> str:
    """Render the report of at least one pair as a self-contained HTML page that shows its command line.

    The comparison of the systems is None for a single system.
    """
    means = [mean_with_interval(name, values) for name, values in scored.scores.items()]
    length = LENGTH
    while length in scored.groups:  # a field of the user's has this name
        length += " (counted)"
    lengths = [len(text.split()) for text in scored.references]
    fields = {**scored.groups, length: number_ranges(lengths)}
    return render(
        Path(__file__).with_name("pairs_page.html"),
        scored=scored,
        means=means,
        comparison=comparison,
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
            length: describe_trend("longer references", lengths, scored.main),
        },
        score=describe_scores(scored),
        length=length,
        pairs=format_count(len(scored), "pair"),
        choice=describe_choice(scored),
        explained=describe_word_search(scored),
        surprising=describe_high_scores(scored),
        similar=format_number(SIMILAR, 1),
        doubtful=format_number(DOUBTFUL, 1),
        longest=LONGEST_SHOWN,
        has_cut=any(is_cut(scored, int(i)) for i in choose_pairs(scored)),
        data=page_data_json(scored, fields),
        number=lambda value: _NONE if value is None else format_number(value),
        probability=lambda p: _NONE if p is None else format_p_value(p),
        command=command,
    )


def _scatters(scored: ScoredPairs) -> list[tuple[str, float, str]]:
    """Return the name of each further metric, its Spearman correlation with the main metric, and an SVG."""
    # The columns are then systems, not metrics.
    if scored.has_systems:
        return []
    main, *others = scored.scores.items()
    return [
        (name, spearman_with_p(main[1], values)[0], draw_scatter(main, (name, values)))
        for name, values in others
    ]
