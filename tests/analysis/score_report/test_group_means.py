"""The mean scores of groups of pairs in a report, with intervals and significance tests."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simllm.analysis.score_report.sentences import (
    first_numbers,
    group_means,
    mean_with_interval,
    number_ranges,
)


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
