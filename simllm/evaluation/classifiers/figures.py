"""The figures of a study of classifiers, as SVG elements.

They show calibration (step S8 of the protocol ECSER-LLM), and ROC and precision-recall curves (step S10).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame

from simllm.array_types import Floats
from simllm.evaluation.classifiers.predictions import positive_scores
from simllm.evaluation.classifiers.protocol import ClassifierStudy, main_split
from simllm.io.svg_figure import BLUE, GREY, Figure, style, svg_element
from simllm.io.tables import short_label

_MOST_CURVES, _MOST_POINTS = 8, 400
_COLORS = (BLUE, "#c1571b", "#4a7c2f", "#8a4fa0", "#b0912b", "#2f6f6f", "#a33b4f", "#555555")


def draw_calibration(study: ClassifierStudy) -> str | None:
    """Draw a reliability diagram for each of up to eight classifiers; None without probabilities."""
    shown = []
    for name, found in study.classifiers.items():
        kinds = found.splits[main_split(found.splits)].calibration
        # With more than two classes, there is only the confidence in the predicted label.
        kind = "positive" if "positive" in kinds else "top"
        if kind in kinds:
            shown.append((name, kind, kinds[kind]))
    if not shown:
        return None
    shown = shown[:_MOST_CURVES]  # the page says so
    with style():
        figure = Figure(figsize=(9, 2.6 * -(-len(shown) // 4)))
        panels = figure.subplots(-(-len(shown) // 4), 4, squeeze=False).ravel()
        for axes, (name, kind, calibration) in zip(panels, shown, strict=False):
            bins = calibration.bins
            axes.plot([0, 1], [0, 1], color=GREY, lw=1)
            sizes = np.array([each.size for each in bins])
            axes.scatter(
                [each.probability for each in bins], [each.share for each in bins],
                s=12 + 60 * sizes / sizes.max(), color=BLUE, alpha=0.8, lw=0,
            )  # fmt: skip
            axes.set_title(f"{short_label(name)}\nECE {calibration.ece:.3f}", fontsize=9)
            axes.set_xlabel("P(positive)" if kind == "positive" else "confidence")
            axes.set_ylabel("share of positives" if kind == "positive" else "accuracy")
            axes.set_xlim(-0.03, 1.03)
            axes.set_ylim(-0.03, 1.03)
        for axes in panels[len(shown) :]:
            axes.set_visible(False)
        figure.tight_layout()
    return svg_element(figure)


def draw_curves(study: ClassifierStudy) -> str | None:
    """Draw ROC and precision-recall curves of up to eight classifiers; None with more than two classes.

    A curve is computed from scores, and a dot from predicted labels. A classifier without scores has only
    dots.
    """
    if len(study.labels) != 2:
        return None
    from sklearn.metrics import precision_recall_curve, roc_curve

    with style():
        figure = Figure(figsize=(9, 3.8))
        left, right = figure.subplots(1, 2)
        left.plot([0, 1], [0, 1], color=GREY, lw=1)
        for (name, found), color in zip(study.classifiers.items(), _COLORS, strict=False):
            metrics = found.splits[main_split(found.splits)].metrics
            values = (metrics[key].value for key in ("recall", "precision", "specificity"))
            # Undefined values (None) become NaN, for which matplotlib draws no dot.
            recall, precision, specificity = (math.nan if value is None else value for value in values)
            label = short_label(name)
            left.scatter([1 - specificity], [recall], s=22, color=color, zorder=3)
            right.scatter([recall], [precision], s=22, color=color, zorder=3, label=label)
            positive, scores = _scores(study, name)
            if 0 < positive.sum() < len(positive):
                wrong, right_share, _ = roc_curve(positive, scores)
                left.plot(*_thin(wrong, right_share), lw=1.5, color=color)
                precisions, recalls, _ = precision_recall_curve(positive, scores)
                right.plot(*_thin(recalls, precisions), lw=1.5, color=color)
        for axes, x, y in ((left, "false positive rate", "recall"), (right, "recall", "precision")):
            axes.set_xlabel(x)
            axes.set_ylabel(y)
            axes.set_xlim(-0.03, 1.03)
            axes.set_ylim(-0.03, 1.03)
            axes.spines[["top", "right"]].set_visible(False)
        right.legend(frameon=False, fontsize=8)
        figure.tight_layout()
    return svg_element(figure)


def _scores(study: ClassifierStudy, name: str) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return whether the true class is positive (n,), and the scores (n,), of rows of the main split."""
    rows: DataFrame = study.predictions.rows
    own = rows[(rows["classifier"] == name) & (rows["variant"] == "") & rows["predicted"].notna()]
    if own.empty:
        return np.array([], bool), np.array([])
    own = own[own["split"] == main_split(study.classifiers[name].splits)]
    values, _ = positive_scores(own, study.labels[0], study.labels)
    known = ~np.isnan(values)
    return (own["gold"] == study.labels[0]).to_numpy()[known], values[known]


def _thin(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Select at most 400 points of a curve, so that the report stays small."""
    # Both ends stay; rounding may choose a point twice.
    chosen = np.unique(np.linspace(0, len(x) - 1, min(len(x), _MOST_POINTS)).astype(int))
    return x[chosen], y[chosen]
