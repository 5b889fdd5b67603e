"""The sentences of a report."""

import dataclasses
import re

import numpy as np
import pytest

from simllm.analysis.comparison import compare_scores
from simllm.analysis.score_report import ScoredPairs, render_report
from tests.analysis.score_report.report_page_data import data_of


def items(page):
    """Return the list items of a page, which are the sentences at its top."""
    return re.findall("<li>(.*?)</li>", page)


def test_the_scores_of_each_system_are_put_into_words(default_metric):
    scale = default_metric.calibration
    scores = {"good": np.array([0.9, 0.8, 0.7]), "bad": np.array([0.9, -0.1, 0.0])}
    run = ScoredPairs(["a"] * 3, {name: ["b"] * 3 for name in scores}, scores, calibration=scale)
    sentences = items(render_report(run, "", compare_scores(scores)))
    assert sentences[0].startswith("good has the highest mean score")
    assert "No pair scores below ." in sentences[1]
    rating = scale.rating(scores["bad"]).mean()
    assert sentences[1].startswith("good: the mean is above 99.9% of the scores of unrelated texts.")
    assert f"The estimated human rating is {rating:.1f}. 2 pairs (67%) score below ." in sentences[2]
    assert sentences[3].startswith("95% of unrelated texts score below .")
    assert f"from {scale.ratings[0]:.1f} to {scale.ratings[-1]:.1f}" in sentences[4]


def test_a_sentence_counts_the_pairs_that_may_be_unrelated(default_metric):
    scores = {"score": np.array([0.9, 0.0, 0.1])}
    run = ScoredPairs(["a"] * 3, {"": ["b"] * 3}, scores, calibration=default_metric.calibration)
    page = render_report(run, "")
    assert items(page)[2].startswith("2 pairs (67%) may be of unrelated texts: they score below .")
    assert [pair.get("unrelated") for pair in data_of(page)["pairs"]] == [None, True, True]
    assert "Unrelated texts score around -.0" in page
    high = dataclasses.replace(run, scores={"score": np.full(3, 0.9)})
    assert items(render_report(high, ""))[2].startswith("No pair scores below .")


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        (range(20), "Longer references score higher (Spearman&#39;s \u03c1 = 1.000, p &lt; .001)."),
        (range(20, 0, -1), "Longer references score lower (Spearman&#39;s \u03c1 = -1.000, p &lt; .001)."),
        ([1, 2] * 10, "There is no sign that longer references score higher or lower (Spearman&#39;s"),
    ],
)
def test_a_sentence_says_whether_scores_rise_with_the_length_and_with_numbers(scores, expected):
    references = ["word " * (i + 1) for i in range(20)]
    groups = {"stars": [f"{i} to {i + 1}" for i in range(20)], "name": ["a", "1"] * 10}
    run = ScoredPairs(references, {"": references}, {"score": np.array(scores, float)}, groups=groups)
    page = render_report(run, "")
    assert f"<p>{expected}" in page
    assert page.count("with a larger number of stars score") == 1
    assert "number of name" not in page


def test_a_field_with_huge_or_equal_numbers_is_compared_or_left_out():
    groups = {"size": [str(10**400 + i) for i in range(5)], "one": ["7"] * 5}
    run = ScoredPairs(["a"] * 5, {"": ["b"] * 5}, {"score": np.arange(5) / 5}, groups=groups)
    page = render_report(run, "")
    assert "Pairs with a larger number of size score higher" in page
    assert "number of one" not in page
