"""The flags of pairs in a report, and the threshold between good and bad scores."""

import dataclasses

import numpy as np

from simllm.analysis.score_report import ScoredPairs, render_report
from simllm.analysis.score_report.pairs import find_long_texts
from tests.analysis.score_report.report_page_data import data_of, run_of


def test_without_a_learned_metric_a_high_score_is_above_the_median():
    scores = {"rps": np.array([9.0, 1.0, 4.0])}
    page = render_report(ScoredPairs(["a"] * 3, {"": ["b"] * 3}, scores), "")
    assert data_of(page)["worstGoodScore"] == 4
    assert "There, a score is low up to 4.000, the median." in page


def test_long_texts_are_found_in_every_column(default_metric):
    long = "opens the file " * 200
    run = ScoredPairs(["a", long, "c"], {"x": ["a", "b", "c"], "y": ["a", "b", long]}, {"x": np.ones(3)})
    metrics = {"x": default_metric, "y": default_metric}
    assert find_long_texts(metrics, run.texts) == [1, 2]
    assert find_long_texts({}, run.texts) == []
    found = dataclasses.replace(run_of(3), truncated=2, long_texts=[1, 2])
    assert "In 2 pairs (67%), a text is longer than the model reads." in render_report(found, "")
