import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from simllm.evaluation.metric_study import figures, report
from simllm.evaluation.metric_study.report import write_conclusions
from simllm.evaluation.metric_study.results import MetricResult, correlate_groups, largest_groups
from simllm.evaluation.ratings import Ratings
from simllm.io.tables import format_number, format_p_value
from simllm.stats.agreement import RaterAgreement, ceiling


def row(metric, rho, p_value=1e-4):
    return MetricResult(metric, rho, p_value, rho - 0.05, rho + 0.05, None, math.nan, math.nan, math.nan, [])


def test_numbers_are_formatted_as_in_papers():
    assert [format_number(value) for value in (0.5, -0.25, 1.0, -1.0, 10.5, math.nan)] == [
        ".500", "-.250", "1.000", "-1.000", "10.500", "n/a",
    ]  # fmt: skip
    assert [format_p_value(value) for value in (1e-9, 0.0123, 1.0, math.nan)] == [
        "< .001",
        ".012",
        "> .999",
        "n/a",
    ]
    assert [format_p_value(value, sign=True) for value in (1e-9, 0.0123, 1.0)] == [
        "< .001",
        "= .012",
        "> .999",
    ]


def test_conclusions_follow_from_the_numbers():
    rows = [row("b", 0.837), row("a", 0.836), row("c", 0.4, 0.01)]
    p = np.array([[1, 0.93, 0.001], [0.93, 1, 0.001], [0.001, 0.001, 1]])
    people = RaterAgreement(3, 0.6, 0.6, 0.8, ceiling(0.8), [0.7, 0.81, math.nan])
    test = "(permutation test at 0.05, Holm's correction for 3 comparisons)"
    assert write_conclusions(rows, p, 210, people) == [
        "b agrees best with people: Spearman .837, 95% interval .787 to .887.",
        f"210 pairs cannot separate b from a (.836): here a lead of .001 may be chance {test}.",
        f"b is significantly better than c {test}.",
        "Not significant at p < 0.001: c.",
        "One of the 3 raters correlates with the mean of the others at .700 to .810, one half of the "
        "raters with the other half at .800: a metric can be expected to reach .943 against the mean of all "
        "raters (Spearman and Brown).",
    ]
    rows = [
        replace(row, kendall=k, pearson=0.5 - k, pairwise_accuracy=k)
        for row, k in zip(rows, (0.4, 0.3, 0.1), strict=True)
    ]
    said = write_conclusions(rows, p, 29, None)
    assert said[-2:] == [
        "29 pairs are few: bootstrap intervals of fewer than 30 are too narrow.",
        "Other metrics are best by other measures: c by Pearson's r.",
    ]


def test_conclusions_mention_weak_evidence():
    weak = row("a", 1.0, 1 / 3)
    weak = replace(weak, low=math.nan, high=math.nan)
    alone = np.ones((1, 1))
    people = RaterAgreement(2, -0.2, -0.2, -0.3, ceiling(-0.3), [-0.3, -0.3])
    assert write_conclusions([weak], alone, 3, people) == [
        "No metric is shown to agree with people: even the highest correlation may be chance (a, Spearman "
        "1.000, no interval (all resamples are equal); p = .333, permutation test).",
        "Not significant at p < 0.001: a.",
        "3 pairs are few: bootstrap intervals of fewer than 30 are too narrow.",
        "One of the 2 raters correlates with the mean of the others at -.300 to -.300, one half of the "
        "raters with the other half at -.300: the raters do not agree, so that no metric can be "
        "expected to agree with them.",
    ]
    assert write_conclusions([row("distance", -0.8)], alone, 90, None) == [
        "No metric agrees with people: no correlation is above zero. The highest is distance's: Spearman "
        "-.800, 95% interval -.850 to -.750.",
        "Every correlation is significant at p < 0.001.",
        "Significantly below zero: distance.",
    ]


@pytest.mark.slow
def test_thousands_of_systems(tmp_path):
    """The figure and the table of a report show only the largest of 3,000 systems."""
    n, size = 3000, 20
    values = np.random.default_rng(0).normal(size=n * size)
    labels = [f"system {i}" for i in range(n) for _ in range(size)]
    rated = Ratings("set", ["a"] * len(values), ["b"] * len(values), values, groups={"system": labels})
    found = correlate_groups(rated, {"m": values})
    assert len(found) == n
    parts = [replace(found[0], label="large", pairs=90), *found]
    assert [part.label for part in largest_groups(parts, 3)] == ["large", "system 0", "system 1"]
    one = SimpleNamespace(name="set", groups=parts, results=[row("m", 0.5)])
    assert figures.by_group(one).count("n = 20") == 29
    assert report._groups(one).count(" (20)") == 11
