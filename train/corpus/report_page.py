"""The diagrams in the report about a corpus, drawn as SVG elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from simllm.io.html_page import render
from simllm.io.svg_figure import BLUE, PALE, Figure, style, svg_element


def draw_lengths(counts: Mapping[str, Mapping[int, int]], most_words: int) -> str:
    """Draw a histogram of text lengths in words, with one panel for each kind of text, as an SVG element.

    `counts` maps a length to the number of texts; the last bin has `most_words` words or more.
    """
    with style():
        figure = Figure(figsize=(9.8, 2.4), layout="constrained")
        panels = figure.subplots(1, len(counts), squeeze=False).ravel()
        for axes, (kind, bars) in zip(panels, counts.items(), strict=True):
            axes.bar(list(bars), list(bars.values()), width=0.85, color=BLUE)
            ticks = range(10, most_words + 1, 10)
            axes.set_xticks(ticks, [*map(str, ticks[:-1]), f"≥ {most_words}"])
            axes.set_xlim(0, most_words + 1)
            axes.set_xlabel("words")
            axes.set_title(f"{kind}: {sum(bars.values()):,} texts", loc="left", fontsize=10)
            axes.yaxis.set_major_formatter("{x:,.0f}")
            axes.spines[["top", "right", "left"]].set_visible(False)
            axes.tick_params(axis="y", length=0)
            axes.grid(axis="y", color=PALE, linewidth=0.6)
            axes.set_axisbelow(True)
        return svg_element(figure)


def draw_vocabulary(growth: Sequence[tuple[int, int]]) -> str:
    """Draw the growth of the vocabulary as an SVG element, from pairs (texts, distinct words in them)."""
    with style():
        figure = Figure(figsize=(4.9, 2.8), layout="constrained")
        axes = figure.subplots()
        axes.plot(*zip(*growth, strict=True), "o-", color=BLUE, markersize=3)
        axes.set(xscale="log", yscale="log", xlabel="texts", ylabel="different words")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter("{x:,.0f}")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color=PALE, linewidth=0.6)
        return svg_element(figure)


# Counts that do not say why something was left out.
_NOT_LEFT_OUT = {"files": ("read", "bytes"), "comments": (), "texts": ("read", "train", "test")}


def render_page(facts: dict[str, Any], most_words: int) -> str:
    """Render the content of `report.json` as HTML; the last bin of the lengths has `most_words` or more."""
    lengths = {kind: counts for kind, counts in facts["lengths"].items() if counts}
    return render(
        Path(__file__).with_name("report_page.html"),
        facts=facts,
        left_out={stage: _left_out(stage, tally) for stage, tally in facts["found"].items()},
        lengths=draw_lengths(lengths, most_words) if lengths else "",
        vocabulary=draw_vocabulary(facts["vocabulary"]),
    )


def _left_out(stage: str, tally: dict[str, Any]) -> list[tuple[str, int, list[str]]]:
    """List the reasons of a stage ("files", "comments" or "texts") with counts and examples, frequent ones
    first.
    """
    counts = {kind: n for kind, n in tally["counts"].items() if n and kind not in _NOT_LEFT_OUT[stage]}
    kinds = sorted(counts, key=lambda kind: -counts[kind])
    return [(kind, counts[kind], tally["examples"].get(kind, [])) for kind in kinds]
