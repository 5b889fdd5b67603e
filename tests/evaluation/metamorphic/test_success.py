"""Success rates of metamorphic studies equal reference results, in Python and by command."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simllm.evaluation.metamorphic.results import ItemOutcome
from simllm.evaluation.metamorphic.success import study_success
from simllm.stats.significance import fisher
from tests.command import run

SETS = ["ten-draws", "one-draw", "nothing-solved", "all-lost", "no-change", "uneven-draws"]


@pytest.fixture(scope="module")
def vectors(shared):
    return json.loads((shared / "reference" / "metamorphic-study.json").read_text())


def close(found, expected, name):
    if expected is None or found is None:
        assert found is expected, name
    elif expected == "inf":
        assert found in ("inf", math.inf), name
    else:
        assert found == pytest.approx(expected, abs=1e-9), name


@pytest.mark.parametrize("name", SETS)
def test_figures_of_the_reference_vectors(vectors, tmp_path, name):
    case = vectors["sets"][name]
    expected = case["expected"]
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(item) + "\n" for item in case["items"]))
    done = run("evaluate", "metamorphic", "--recorded", tmp_path / "results.jsonl", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out" / "metamorphic.json").read_text())["tools"][""]
    assert found["pooled"]["table"] == expected["pooled"]["table"]
    for key in ("odds_ratio", "fisher_p"):
        close(found["pooled"][key], expected["pooled"][key], key)
    for key, value in expected["mean"].items():
        close(found["mean"][key], value, key)
    close(found["mean"]["p"], expected["sign_flip_p"], "sign_flip_p")
    assert len(found["items"]) == len(expected["items"])
    for item, wanted in zip(found["items"], expected["items"], strict=True):
        for key, value in wanted.items():
            close(item[key], value, f"{item['id']} {key}") if key != "id" else None
    for key in ("better", "worse", "better_holm", "worse_holm", "balanced"):
        assert found[key] == expected[key], key
    assert (found["mcnemar"] is None) == ("mcnemar" not in expected)
    for key, value in expected.get("mcnemar", {}).items():
        close(found["mcnemar"][key], value, key)
    assert (found["likelihood"] is None) == ("nll" not in expected)
    if "nll" in expected:
        close(found["likelihood"]["median"], expected["nll"]["median"], "median")
        for part in ("all", "below_median", "above_median"):
            for key, value in expected["nll"][part].items():
                close(found["likelihood"][part][key], value, f"{part} {key}")


def test_published_table(vectors):
    rows = vectors["published"]["table_5_1"]
    for row in rows:
        _, odds_ratio, p, _ = fisher(row["counts"])
        assert (p < 0.05) == row["bold"]
        assert p == pytest.approx(row["fisher_p"], rel=0.03)
        assert odds_ratio == pytest.approx(row["odds_ratio"], abs=5e-4)
    lang = vectors["published"]["lang_43"]
    outcome = ItemOutcome("Lang-43", tuple(lang["original"]), tuple(lang["transformed"]))
    (item,) = study_success([outcome]).items
    assert (item.odds_ratio, round(item.fisher_p, 4)) == (math.inf, lang["fisher_p"])


counts = st.integers(1, 10).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
outcomes = st.lists(st.tuples(counts, counts), min_size=1, max_size=13).map(
    lambda pairs: [ItemOutcome(str(i), a, b) for i, (a, b) in enumerate(pairs)]
)


@settings(max_examples=30)
@given(outcomes, st.randoms())
def test_neither_the_order_of_items_nor_of_sides_changes_a_p_value(items, random):
    found = study_success(items)
    swapped = study_success([ItemOutcome(one.id, one.transformed, one.original) for one in items])
    assert swapped.mean.p == found.mean.p
    assert swapped.mean.difference == pytest.approx(-found.mean.difference)
    assert (swapped.better, swapped.worse) == (found.worse, found.better)
    shuffled = list(items)
    random.shuffle(shuffled)
    assert study_success(shuffled).mean.p == pytest.approx(found.mean.p)
    assert study_success(shuffled).pooled == found.pooled


@pytest.mark.slow
def test_interval_covers_the_difference_of_most_samples():
    random = np.random.default_rng(1)
    covered = 0
    for _ in range(100):
        rates = random.uniform(0.2, 0.8, 60)
        pairs = zip(random.binomial(10, rates), random.binomial(10, rates - 0.1), strict=True)
        items = [ItemOutcome(str(i), (int(a), 10), (int(b), 10)) for i, (a, b) in enumerate(pairs)]
        mean = study_success(items).mean
        covered += mean.low <= -0.1 <= mean.high
    assert covered >= 88


def test_rules_groups_and_unchanged_variants_are_told_apart():
    items = [
        ItemOutcome("a", (5, 5), (0, 5), group="x", rules=("for-to-while",)),
        ItemOutcome("b", (5, 5), (5, 5), group="y", rules=(), unchanged=True),
        ItemOutcome("c", (5, 5), (4, 5), group="y", rules=("reverse-if",)),
    ]
    found = study_success(items)
    with_rule, without = found.by_rule["for-to-while"]
    assert (with_rule.items, with_rule.difference) == (1, -1.0)
    assert (without.items, without.difference) == (2, pytest.approx(-0.1))
    assert {group: one.items for group, one in found.groups.items()} == {"x": 1, "y": 2}
    assert (found.unchanged.items, found.unchanged.difference) == (1, 0.0)
    assert found.filtered.difference < found.mean.difference
