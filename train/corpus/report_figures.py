"""The diagrams in the report about a corpus, drawn as SVG elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
