"""Figures of the score report as SVG elements: distributions of scores, scatter plots of two metrics."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from simllm.analysis.score_report.scored_pairs import ScoredPairs
from simllm.array_types import Floats
from simllm.io.svg_figure import BLUE, Figure, style, svg_element

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
