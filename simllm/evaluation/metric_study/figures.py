"""The figures of a study, as SVG elements (Figs. 5 to 8 of the SIMLLM paper)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from simllm.evaluation.metric_study.results import MetricResult, SetStudy, largest_groups
from simllm.io.svg_figure import BLUE, GREY, INK, Axes, Figure, style, svg_element
from simllm.io.tables import format_number, short_label

_OURS, _OTHERS = BLUE, GREY
_INCHES_PER_CHARACTER = 0.08
_MOST_PARTS = 30  # largest number of columns in a heat map


def correlations(sets: Sequence[SetStudy]) -> str:
    """Draw Spearman's rho of each metric with its 95% interval, a panel for each set (Fig. 5 of the SIMLLM
    paper).
    """
    return _by_set(sets, _bars)


def distributions(sets: Sequence[SetStudy]) -> str:
    """Draw a box plot of each metric's scores, a panel for each set (Fig. 6 of the SIMLLM paper).

    Boxes show quartiles; whiskers go from the 5% to the 95% quantile.
    """
    return _by_set(sets, _boxes)


def between(study: SetStudy) -> str:
    """Draw a heat map of Spearman's rho between the scores of metrics (Fig. 7 of the SIMLLM paper)."""
    names = [short_label(row.metric) for row in study.results]
    return _heat_map(names, names, study.between)


def by_group(study: SetStudy) -> str:
    """Draw a heat map of each metric's correlation with human ratings in the largest groups of pairs."""
    parts = largest_groups(study.groups, _MOST_PARTS)
    names = [f"{short_label(part.label)} (n = {part.pairs})" for part in parts]
    cells = [[part.spearman[row.metric] for part in parts] for row in study.results]
    return _heat_map([short_label(row.metric) for row in study.results], names, cells)


def training(sets: Sequence[SetStudy]) -> str:
    """Draw the learned metric's correlation over training updates, a panel for each set (Fig. 8 of the SIMLLM
    paper).
    """

    def draw(axes: Axes, study: SetStudy) -> None:
        updates = [at for at, _ in study.checkpoints]
        rows = [row for _, row in study.checkpoints]
        axes.fill_between(
            updates, [r.low for r in rows], [r.high for r in rows], color=_OURS, alpha=0.12, lw=0
        )
        axes.plot(updates, [row.spearman for row in rows], "o-", color=_OURS, markersize=4)
        # The first checkpoint is the untrained model.
        axes.axhline(rows[0].spearman, color=_OTHERS, linestyle="--", linewidth=1)
        axes.annotate("untrained", (updates[-1], rows[0].spearman), ha="right", va="bottom", color=_OTHERS)
        axes.set(xlabel="updates", ylabel="Spearman's rho", title=short_label(study.name))

    return _panels(sets, draw, 3.0)


def _by_set(sets: Sequence[SetStudy], draw: Callable[[Axes, SetStudy, list[MetricResult]], None]) -> str:
    """Draw a panel for each set, with a row for each metric.

    `draw` takes the axes, the results on the set, and those of the metrics in the order of the rows, from
    bottom to top.
    """

    def one(axes: Axes, study: SetStudy) -> None:
        rows = study.results[::-1]  # the best on top
        draw(axes, study, rows)
        axes.set_yticks(range(len(rows)), [short_label(row.metric) for row in rows])
        axes.tick_params(axis="y", length=0)
        axes.set_title(f"{short_label(study.name)}, n = {study.pairs:,}", loc="left", fontsize=10)

    return _panels(sets, one, 0.6 + 0.24 * max(len(study.results) for study in sets))


def _bars(axes: Axes, study: SetStudy, rows: list[MetricResult]) -> None:
    """Draw Spearman's rho as bars with 95% intervals, and the ceiling as a dotted line."""
    for place, row in enumerate(rows):
        axes.barh(place, row.spearman, height=0.7, color=_colour(row.metric))
        axes.plot([row.low, row.high], [place, place], color=INK, linewidth=0.8)
        # The number must stay readable where it lies on the line of the ceiling.
        behind = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
        # The interval is NaN if all resamples are equal.
        right = max(0, row.spearman if math.isnan(row.high) else row.high)
        axes.text(right + 0.015, place, format_number(row.spearman), va="center", fontsize=8, bbox=behind)
    if study.agreement is not None and math.isfinite(study.agreement.ceiling):
        axes.axvline(study.agreement.ceiling, color=INK, linestyle=":", linewidth=0.8)
        axes.text(study.agreement.ceiling, -1.0, "the raters' ceiling ", ha="right", va="center", fontsize=8)
        # The label of the ceiling stands below the lowest bar.
        axes.set_ylim(-1.5, len(rows) - 0.4)
    axes.set_xlim(min(0, *(row.spearman if math.isnan(row.low) else row.low for row in rows)), 1.02)
    axes.set_xlabel("Spearman's rho, 95% interval")


def _boxes(axes: Axes, study: SetStudy, rows: list[MetricResult]) -> None:
    """Draw box plots from the quantiles in `rows`; `study` is not used."""
    names = ("whislo", "q1", "med", "q3", "whishi")
    boxes = [dict(zip(names, row.quantiles, strict=True)) for row in rows]
    drawn = axes.bxp(
        boxes, positions=range(len(rows)), orientation="horizontal", showfliers=False, patch_artist=True,
        widths=0.6, medianprops={"color": INK}, whiskerprops={"color": _OTHERS}, capprops={"color": _OTHERS},
    )  # fmt: skip
    for box, row in zip(drawn["boxes"], rows, strict=True):
        box.set(facecolor=_colour(row.metric), edgecolor="none", alpha=0.8)
    axes.set_xlabel("score: quartiles, 5 and 95%")


def _heat_map(rows: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[float]]) -> str:
    """Draw a heat map of r rows of c cells, with a colour scale from 0 to 1."""
    with style():
        # The margins grow with the longest label, so that the cells keep their size.
        left, below = (_INCHES_PER_CHARACTER * max(map(len, names)) for names in (rows, columns))
        size = (max(1.8, 0.6 + left) + 0.52 * len(columns), max(1.4, 0.6 + below) + 0.3 * len(rows))
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        axes.pcolormesh(cells, cmap="GnBu", vmin=0, vmax=1, edgecolors="white", linewidth=1)
        axes.invert_yaxis()
        middles = [[place + 0.5 for place in range(len(names))] for names in (columns, rows)]
        axes.set_xticks(middles[0], columns, rotation=45, ha="right", rotation_mode="anchor")
        axes.set_yticks(middles[1], rows)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        for i, row in enumerate(cells):
            for j, value in enumerate(row):
                # Dark cells need a light text.
                colour, middle = "white" if value > 0.6 else INK, (j + 0.5, i + 0.5)
                axes.text(
                    *middle, format_number(value, 2), ha="center", va="center", color=colour, fontsize=8
                )
        return svg_element(figure)


def _panels(sets: Sequence[SetStudy], draw: Callable[[Axes, SetStudy], None], height: float) -> str:
    """Draw panels of a height in inches, one for each set, two side by side."""
    columns = min(2, len(sets))
    lines = math.ceil(len(sets) / columns)
    with style():
        figure = Figure(figsize=(4.9 * columns, height * lines), layout="constrained")
        panels = figure.subplots(lines, columns, squeeze=False).ravel()
        for axes, study in zip(panels, sets, strict=False):
            draw(axes, study)
            axes.spines[["top", "right", "left"]].set_visible(False)
        # An odd number of sets leaves the last panel empty.
        for axes in panels[len(sets) :]:
            axes.remove()
        return svg_element(figure)


def _colour(metric: str) -> str:
    return _OURS if metric.startswith("simllm") else _OTHERS
