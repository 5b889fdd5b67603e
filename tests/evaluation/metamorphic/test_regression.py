"""The regression of success on rewritten places, against statsmodels' own logistic regression."""

import json

import numpy as np
import pytest

from simllm.evaluation import metamorphic
from simllm.evaluation.metamorphic.regression import regress_on_counts


def write(tmp_path, rows):
    file = tmp_path / "results.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return metamorphic.read_recorded(file)


def harmful(n=40, draws=10):
    """Counts of items on which each place of the rule "a" costs successes, and "b" costs none."""
    rows = []
    for number in range(n):
        a, b = number % 4, number // 4 % 2
        original = 3 + number % 5
        rows.append(
            {
                "id": f"i{number:02}",
                "original": [original, draws],
                "transformed": [max(original - 2 * a + number % 2, 0), draws],
                "counts": {"a": a, "b": b},
            }
        )
    return rows


def test_coefficients_equal_a_logistic_regression_of_single_draws(tmp_path):
    import statsmodels.api as sm  # here, because each process of the tests imports all test files

    rows = harmful()
    found = regress_on_counts(write(tmp_path, rows), "")
    by_rules = {one.rules: one for one in found.factors}
    assert set(by_rules) == {("a",), ("b",), ("a", "b")}
    assert (found.variants, found.left_out) == (40, 0)
    for rules, one in by_rules.items():
        y, design, groups = [], [], []
        for number, row in enumerate(rows):
            done, draws = row["transformed"]
            won, all_ = row["original"]
            baseline = np.log((won + 0.5) / (all_ - won + 0.5))
            factor = np.prod([row["counts"][rule] for rule in rules])
            y += [1] * done + [0] * (draws - done)
            design += [[1, baseline, factor]] * draws
            groups += [number] * draws
        logit = sm.Logit(y, np.array(design)).fit(disp=0, cov_type="cluster", cov_kwds={"groups": groups})
        assert one.coefficient == pytest.approx(logit.params[2], rel=1e-5)
        assert one.odds_ratio == pytest.approx(np.exp(logit.params[2]), rel=1e-5)
        # Sums and single draws differ only in the correction for their number.
        assert one.p == pytest.approx(logit.pvalues[2], abs=0.02)
    assert by_rules["a",].odds_ratio < 0.7
    assert by_rules["a",].holm_p < 0.001
    assert found.factors[0].rules == ("a",)
    assert by_rules["b",].low < 1 < by_rules["b",].high


def test_factors_have_up_to_three_rules(tmp_path):
    generator = np.random.default_rng(3)
    rows = [
        {
            "id": f"i{n}",
            "original": [5, 10],
            "transformed": [int(generator.integers(2, 8)), 10],
            "counts": {
                rule: int(count) for rule, count in zip("abcd", generator.integers(0, 3, 4), strict=True)
            },
        }
        for n in range(120)
    ]
    found = regress_on_counts(write(tmp_path, rows), "")
    assert {len(one.rules) for one in found.factors} == {1, 2, 3}
    assert len(found.factors) + found.left_out == 4 + 6 + 4


def test_rare_rules_and_perfect_separation_have_no_estimate(tmp_path):
    rows = [
        {
            "id": f"i{n}",
            "original": [5, 10],
            "transformed": [10 * (n % 2), 10],
            "counts": {"a": n % 2, "b": n == 3},
        }
        for n in range(20)
    ]
    for row in rows:
        row["counts"]["b"] = int(row["counts"]["b"])
    found = regress_on_counts(write(tmp_path, rows), "")
    assert found.factors == []
    assert found.left_out == 3


def test_draws_of_several_variants_are_rows_of_their_own(tmp_path):
    rows = []
    for n in range(12):
        rows += [{"id": f"i{n}", "side": "original", "draw": d, "success": d < 2} for d in range(4)]
        for variant in range(2):
            rows += [
                {
                    "id": f"i{n}",
                    "side": "transformed",
                    "variant": variant,
                    "draw": d,
                    "success": d < 2 - variant + (n % 3 == 0),
                    "counts": {"a": variant},
                }
                for d in range(4)
            ]
    recorded = write(tmp_path, rows)
    found = regress_on_counts(recorded, "")
    assert found.variants == 24
    assert found.factors[0].odds_ratio < 0.5
    study = metamorphic.evaluate(recorded).tools[""].study
    # The answers about both variants count together, and an item is one unit.
    assert study.mean.items == 12
    assert {one.transformed[1] for one in study.outcomes} == {8}
    warnings = metamorphic.evaluate(recorded).warnings
    assert not [text for text in warnings if "more draws" in text]
    assert [text for text in warnings if "the regression of the tool has 12 items" in text]


def test_without_counts_there_is_no_regression(tmp_path):
    rows = [{key: value for key, value in row.items() if key != "counts"} for row in harmful()]
    assert regress_on_counts(write(tmp_path, rows), "") is None
