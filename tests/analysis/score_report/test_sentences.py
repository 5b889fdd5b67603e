"""What a report says: mean scores of groups with intervals and tests, and sentences."""

import dataclasses
import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simllm.analysis.comparison import compare_scores
from simllm.analysis.score_report import ScoredPairs, render_report
from simllm.analysis.score_report.sentences import (
    first_numbers,
    group_means,
    mean_with_interval,
    number_ranges,
)
from tests.analysis.score_report.reports import data_of


def test_the_interval_is_that_of_student():
    mean = mean_with_interval("all", np.array([0.1, 0.2, 0.4, np.nan]))
    assert mean.n == 3
    assert mean.mean == pytest.approx(0.7 / 3)
    # By hand: variance 0.07 / 3, t(2) = 4.302653
    width = 4.302653 * (0.07 / 3) ** 0.5 / 3**0.5
    assert (mean.low, mean.high) == pytest.approx((0.7 / 3 - width, 0.7 / 3 + width), abs=1e-6)


@pytest.mark.parametrize("values", [[0.5], [np.nan, 0.5]])
def test_one_score_has_no_interval(values):
    mean = mean_with_interval("one", np.array(values))
    assert (mean.n, mean.mean, mean.low, mean.high) == (1, 0.5, None, None)


def test_only_the_group_that_differs_has_a_small_p_value():
    random = np.random.default_rng(0)
    values = ["go"] * 100 + ["java"] * 100 + ["python"] * 100
    scores = random.normal(0.5, 0.1, 300) + np.repeat([0.0, 0.0, 0.2], 100)
    go, java, python = group_means(values, scores)
    assert [go.name, java.name, python.name] == ["go", "java", "python"]
    assert python.difference == pytest.approx(scores[200:].mean() - scores[:200].mean())
    assert python.p < 1e-20
    assert group_means(values[:200], scores[:200])[0].p > 0.05


def test_p_values_are_those_of_welch_corrected_by_holm():
    a, b = np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 9.0])
    error = (a.var(ddof=1) / 3 + b.var(ddof=1) / 3) ** 0.5
    t = (a.mean() - b.mean()) / error
    freedom = error**4 / ((a.var(ddof=1) / 3) ** 2 / 2 + (b.var(ddof=1) / 3) ** 2 / 2)
    from scipy.stats import t as student

    p = 2 * student.sf(abs(t), freedom)
    groups = group_means(["a"] * 3 + ["b"] * 3, np.concatenate([a, b]))
    assert [group.p for group in groups] == pytest.approx([min(1, 2 * p)] * 2)


def test_small_groups_have_no_p_value_and_the_smallest_are_joined():
    groups = group_means([f"group {i}" for i in range(40)], np.linspace(0, 1, 40))
    assert len(groups) == 26
    assert groups[-1].name == "15 smaller groups"
    assert groups[-1].p is not None
    assert all(group.p is None for group in groups[:-1])


def test_equal_scores_everywhere_are_no_difference():
    assert [group.p for group in group_means(["a"] * 5 + ["b"] * 5, np.ones(10))] == [1, 1]


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=200))
def test_ranges_hold_their_numbers_and_do_not_overlap(numbers):
    names = number_ranges(numbers)
    ranges = {name: tuple(int(part) for part in name.split(" to ")) for name in names}
    for number, name in zip(numbers, names, strict=True):
        assert ranges[name][0] <= number <= ranges[name][-1]
    ordered = sorted(ranges.values())
    assert len(ordered) <= 4
    assert all(before[-1] < after[0] for before, after in itertools.pairwise(ordered))


def test_ranges_take_numbers_of_any_size():
    names = number_ranges([2**80, 2**70 + 1, 5, 0, -(10**400)])
    assert names[2:] == [f"5 to {2**70}", "0 to 4", f"{-(10**400)} to -1"]
    assert names[0] == names[1] == f"{2**70 + 1} to {2**80}"


def test_a_text_of_very_many_digits_is_a_name():
    values = ["9" * 5_000, "7", "5"]
    assert first_numbers(values) is None
    assert [group.name for group in group_means(values, np.ones(3))] == ["5", "7", "9" * 5_000]


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
    assert sentences[1].startswith("good: the mean is above 99.9% of the scores of unrelated texts.")
    assert "% of the scores of unrelated texts. 2 pairs (67%) score below ." in sentences[2]
    assert sentences[3].startswith("95% of unrelated texts score below .")


@pytest.mark.parametrize("systems", [True, False])
def test_scores_of_several_sentences_are_not_compared_with_those_of_unrelated_texts(default_metric, systems):
    names = ["good", "bad"] if systems else ["score"]
    scores = {name: np.array([0.9, 0.0, 0.1]) for name in names}
    candidates = {name if systems else "": ["b"] * 3 for name in names}

    def top(divided):
        run = ScoredPairs(
            ["a"] * 3, candidates, scores, calibration=default_metric.calibration, divided=divided
        )
        return " ".join(items(render_report(run, "", compare_scores(scores) if systems else None)))

    one_is_left = top([1, 2])
    assert "he mean of the 1 pair of single sentences is above" in one_is_left
    assert "None of these pairs scores below " in one_is_left
    assert "of the scores of unrelated" not in top([0, 1, 2])


def test_a_sentence_counts_the_pairs_that_may_be_unrelated(default_metric):
    scores = {"score": np.array([0.9, 0.0, 0.1])}
    run = ScoredPairs(["a"] * 3, {"": ["b"] * 3}, scores, calibration=default_metric.calibration)
    page = render_report(run, "")
    assert items(page)[2].startswith("2 pairs (67%) may be of unrelated texts: they score below .")
    assert [pair.get("unrelated") for pair in data_of(page)["pairs"]] == [None, True, True]
    assert re.search(r"Unrelated texts score around -?\.0\d,", page)
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
