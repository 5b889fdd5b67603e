"""The figures of a report."""

import re

import numpy as np

from simllm.analysis.score_report import ScoredPairs
from simllm.analysis.score_report.page import UNRELATED_TEXTS, draw_distribution
from tests.analysis.score_report.report_page_data import run_of


def test_the_legend_has_all_systems(recwarn):
    names = ["_hidden", "$x$", "\u65e5\u672c", "unrelated texts"]
    scores = {name: np.array([0.2, 0.4]) for name in names}
    run = ScoredPairs(["a", "b"], {name: ["a", "c"] for name in names}, scores)
    figure = draw_distribution(run)
    assert all(f">{name}</text>" in figure for name in names)
    assert not recwarn.list  # the font of matplotlib lacks some glyphs, but the browser has them


def contrast(first, second):
    """Return the contrast of two colours such as "#ffffff", from 1 to 21, as WCAG defines it."""

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return np.dot(linear, [0.2126, 0.7152, 0.0722])

    low, high = sorted(map(luminance, (first, second)))
    return (high + 0.05) / (low + 0.05)


def test_the_distribution_has_contrast_and_numbers_without_a_zero(default_metric):
    figure = draw_distribution(run_of(40, calibration=default_metric.calibration))
    assert contrast(UNRELATED_TEXTS, "#ffffff") > 3
    assert f"fill: {UNRELATED_TEXTS}" in figure
    assert {">.2</text>", ">1</text>"} <= set(re.findall(">[^<>]*</text>", figure))
    assert ">0." not in figure
