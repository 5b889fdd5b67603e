"""The report of a metamorphic study: a self-contained HTML page, and JSON."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from simllm.evaluation.metamorphic.results import ItemOutcome
from simllm.evaluation.metamorphic.study import MetamorphicStudy, ToolResult
from simllm.evaluation.metamorphic.success import MeanDifference, SuccessStudy
from simllm.io.html_page import DASH
from simllm.io.report import ReportKind, write_report
from simllm.io.svg_figure import BLUE, GREY, Figure, style, svg_element
from simllm.io.tables import format_count, format_number, format_p_value

KIND = ReportKind(
    "a metamorphic study",
    "metamorphic.json",
    Path(__file__).with_name("metamorphic_report.html"),
    ("numpy", "scipy"),
    keeps_records=True,  # the tools' answers
)
_WORST = 5  # items that are shown with their code
_FEW = 3  # items that show no trend
_LONGEST_LABEL = 16  # characters of the name of a group in a figure
_FACTORS = 12  # of the regression on the page; the JSON has all


def write(study: MetamorphicStudy, folder: Path, command: str) -> None:
    """Write `report.html` and `metamorphic.json`, and replace an earlier report."""
    page = {
        "study": study,
        "conclusions": write_conclusions(study),
        "figures": {name: draw(found.study) for name, found in study.tools.items()},
        "likelihoods": {name: draw_likelihood(found.study) for name, found in study.tools.items()},
        "worst": {name: worst_items(study, found) for name, found in study.tools.items()},
        "most_factors": _FACTORS,
        "p": _p,
        "ratio": lambda value: DASH if value is None else "∞" if value == math.inf else f"{value:.2f}",
        "name": lambda tool: tool or "the tool",
    }
    write_report(folder, KIND, command, numbers(study), page)


def numbers(study: MetamorphicStudy) -> dict[str, Any]:
    """Return all numeric results of a study as a dict for JSON."""
    tools = {name: asdict(found) for name, found in study.tools.items()}
    for found in tools.values():
        found |= found.pop("study")
        for part in (found["pooled"], *found["items"]):
            # JSON has no infinity.
            part["odds_ratio"] = "inf" if part["odds_ratio"] == math.inf else part["odds_ratio"]
    return {"alpha": study.alpha, "tools": tools, "warnings": study.warnings, "restored": study.restored}


def write_conclusions(study: MetamorphicStudy) -> list[str]:
    """Write for each tool its success rates and whether the difference is significant, as sentences."""
    sentences = []
    for tool, found in study.tools.items():
        mean, name = found.study.mean, tool or "The tool"
        items = format_count(mean.items, "item")
        text = (
            f"{name} succeeds in {format_number(mean.original)} of the draws on originals and in "
            f"{format_number(mean.transformed)} on variants ({items}); {_signed(mean)}"
        )
        p = _p(found.holm_p)
        if found.holm_p <= study.alpha:
            text += f". The difference is more than chance: {p}, at most {study.alpha:g}."
        else:
            text += f". The data do not show that this is more than chance ({p}); it may be."
        sentences.append(text)
        if noise := found.study.unchanged:
            unchanged = format_count(noise.items, "unchanged variant")
            sentences.append(f"On {unchanged}, {_signed(noise)}: this is the noise of the draws.")
    return sentences


def _p(value: float | None) -> str:
    """Format a p-value as "p = .012" or "p < .001"; None becomes "no p-value"."""
    return "no p-value" if value is None else f"p {format_p_value(value, sign=True)}"


def _signed(mean: MeanDifference) -> str:
    """Write a text such as "the difference is -0.120 (95% interval -0.200 to -0.040)"."""
    text = f"the difference is {mean.difference:+.3f}"
    if mean.low is not None and mean.high is not None:
        text += f" (95% interval {mean.low:+.3f} to {mean.high:+.3f})"
    return text


def draw(study: SuccessStudy) -> str:
    """Draw a histogram of the items' differences, and the differences by NLL, and return the SVG."""
    known = [one for one in study.outcomes if one.nll is not None]
    with style():
        figure = Figure(figsize=(9, 2.8))
        axes = figure.subplots(1, 2 if len(known) > _FEW else 1, squeeze=False)[0]
        differences = [one.difference for one in study.outcomes]
        axes[0].hist(differences, bins=np.linspace(-1.05, 1.05, 22).tolist(), color=BLUE)
        axes[0].axvline(study.mean.difference, color="#c1571b", lw=1.2)
        axes[0].set_xlabel("success rate on the variant \u2212 on the original")
        axes[0].set_ylabel("items")
        if len(axes) > 1:
            _draw_by_likelihood(axes[1], known)
        for one in axes:
            one.spines[["top", "right"]].set_visible(False)
        figure.tight_layout()
    return svg_element(figure)


def _draw_by_likelihood(axes: Any, known: Sequence[ItemOutcome]) -> None:
    """Draw the mean difference in up to ten groups of about equal size, sorted by NLL."""
    ranked = sorted(known, key=lambda one: one.nll or 0.0)
    parts = np.array_split(np.array([one.difference for one in ranked]), min(10, len(ranked)))
    ends = np.cumsum([len(part) for part in parts]) / len(ranked) * 100
    centers = ends - np.diff([0, *ends]) / 2
    axes.axhline(0, color=GREY, lw=1)
    axes.plot(centers, [part.mean() for part in parts], "o-", color=BLUE, ms=4, lw=1)
    axes.set_xlabel("percentile of the original's NLL (left: likely, perhaps read before)")
    axes.set_ylabel("mean difference")


def draw_likelihood(study: SuccessStudy) -> str | None:
    """Draw what the NLL tells, as the thesis does, and return the SVG; None with up to three items.

    The figure has the cumulative mean difference, the groups by mean NLL, and box plots of the NLL of items
    that lose, stay and win.
    """
    found = study.likelihood
    if found is None or len(found.cumulative) <= _FEW:
        return None
    with style():
        figure = Figure(figsize=(9, 2.8))
        has_groups = len(found.groups) > 1
        axes = figure.subplots(1, 3 if has_groups else 2, squeeze=False)[0]
        nll, means = zip(*found.cumulative, strict=True)
        axes[0].axhline(0, color=GREY, lw=1)
        axes[0].step(nll, means, where="post", color=BLUE, lw=1.2)
        axes[0].set_xlabel("items up to this NLL")
        axes[0].set_ylabel("mean difference")
        _draw_boxes(axes[1], study.outcomes)
        if has_groups:
            axes[2].axhline(0, color=GREY, lw=1)
            for name, (items, mean_nll, difference) in found.groups.items():
                axes[2].plot(mean_nll, difference, "o", color=BLUE, ms=3 + min(items, 100) ** 0.5, alpha=0.7)
                label = name if len(name) <= _LONGEST_LABEL else f"{name[: _LONGEST_LABEL - 1]}…"
                axes[2].annotate(
                    label, (mean_nll, difference), (4, 3), textcoords="offset points", fontsize=7
                )
            axes[2].set_xlabel("mean NLL of a group")
            axes[2].set_ylabel("mean difference")
        for one in axes:
            one.spines[["top", "right"]].set_visible(False)
        figure.tight_layout()
    return svg_element(figure)


def _draw_boxes(axes: Any, outcomes: Sequence[ItemOutcome]) -> None:
    """Draw box plots of the NLL of the items that lose, stay and win."""
    values = {
        name: [one.nll for one in outcomes if one.nll is not None and np.sign(one.difference) == sign]
        for name, sign in (("lose", -1), ("stay", 0), ("win", 1))
    }
    values = {name: own for name, own in values.items() if own}
    axes.boxplot(
        list(values.values()),
        tick_labels=[f"{name} ({len(own)})" for name, own in values.items()],
        widths=0.5,
        medianprops={"color": BLUE},
        flierprops={"marker": ".", "markersize": 4},
    )
    axes.set_ylabel("NLL of the original")


def worst_items(
    study: MetamorphicStudy, found: ToolResult
) -> list[tuple[ItemOutcome, list[tuple[str, str]]]]:
    """Return up to five items that lose most, the worst first, with their diff from original to variant.

    A line of a diff is its sign ("+", "-" or " ") and its text. Items without known code are left out.
    """
    known = study.sources.keys() & study.variants.keys()
    lost = [one for one in found.study.outcomes if one.difference < 0 and one.id in known]
    chosen = []
    for one in sorted(lost, key=lambda one: one.difference)[:_WORST]:
        before, after = (code[one.id].splitlines() for code in (study.sources, study.variants))
        lines = list(difflib.unified_diff(before, after, n=2, lineterm=""))[2:]
        chosen.append((one, [(line[:1], line[1:]) for line in lines if not line.startswith("@@")]))
    return chosen
