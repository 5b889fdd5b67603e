"""Figures of a run, such as pass rates, equal reference results and published numbers."""

import pytest

from simllm.errors import InputError
from simllm.metrics.code.tree_distances import PatchSize
from simllm.repair.attempt_results import AttemptResult, RoundResult
from simllm.repair.rate_and_cost_limits import Price
from simllm.repair.repair_items import RepairItem
from simllm.repair.run_comparison import compare_runs
from simllm.repair.run_settings import RunSettings
from simllm.repair.run_statistics import compute_statistics
from simllm.repair.run_summary import summarize


def attempt(item, number, accepted, rounds=1, patch=None, fix=None, tokens=(10, 7), **rest):
    """Make an attempt whose last round is accepted or not."""
    made = tuple(
        RoundResult(n, (), "", "", "AC" if accepted and n == rounds else "WA", accepted and n == rounds,
                    prompt_tokens=tokens[0], completion_tokens=tokens[1])
        for n in range(1, rounds + 1)
    )  # fmt: skip
    sizes = [None if edits is None else PatchSize(edits, 10, 10) for edits in (patch, fix)]
    return AttemptResult(item, number, made, (), rest.get("open"), *sizes)


def attempts_of(case):
    return [
        attempt(f"item {i}", n, one["accepted"], one["rounds"], one["distance"], item["fix"])
        for i, item in enumerate(case["items"])
        for n, one in enumerate(item["attempts"], 1)
    ]


def test_figures_of_the_reference_vectors(vectors):
    cases = vectors("metrics")["cases"]
    assert len(cases) == 10
    for case in cases:
        most = max(len(item["attempts"]) for item in case["items"])
        found = compute_statistics(attempts_of(case), most, case["max rounds"], None)
        expected = case["expected"]
        assert found["TOP"] == pytest.approx(expected["TOP"], abs=1e-12), case["name"]
        assert found["AVG"] == pytest.approx(expected["AVG"], abs=1e-12), case["name"]
        assert found["RPSR"] == pytest.approx(expected["RPSR"]), case["name"]
        assert found["RPSR, counted"] == expected["counted"]
        for reason in ("fix at distance 0", "no fix"):
            assert found[f"RPSR, left out, {reason}"] == expected[f"left out, {reason}"], case["name"]
        for row, wanted in zip(found["rounds"], expected["rounds"], strict=True):
            assert {name: row[name] for name in wanted} == pytest.approx(wanted)


@pytest.mark.slow
def test_figures_by_group_have_the_published_weighted_mean(vectors):
    """The pass rate AVG of all items equals the published mean over tiers, weighted by their item counts."""
    published = vectors("published")
    for model, rates in published["AVG-5 by tier"].items():
        items, attempts = [], []
        for (tier, count), rate in zip(published["codes"].items(), rates, strict=True):
            accepted = round(5 * count * rate)
            for n in range(count):
                items.append(RepairItem(f"{tier}-{n}", "", group=tier))
                attempts += [attempt(items[-1].id, k + 1, 5 * n + k < accepted) for k in range(5)]
        summary = summarize(attempts, items, RunSettings(model), 1, {})
        assert summary["figures"]["AVG"] == pytest.approx(published["weighted"][model], abs=1e-3)
        found = [summary["groups"][tier]["AVG"] for tier in published["codes"]]
        assert found == pytest.approx(rates, abs=0.5 / (5 * 23) + 5e-4)
        assert sum(group["items"] for group in summary["groups"].values()) == 1239


def test_tokens_that_are_not_reported_stay_unknown():
    price = Price(3, 15)
    found = compute_statistics([attempt("a", 1, True), attempt("b", 1, True)], 1, 1, price)
    assert found["cost"] == pytest.approx((20 * 3 + 14 * 15) / 1e6)
    found = compute_statistics([attempt("a", 1, True), attempt("b", 1, True, tokens=(10, None))], 1, 1, price)
    assert (found["prompt tokens"], found["completion tokens"], found["cost"]) == (20, None, None)
    assert compute_statistics([attempt("a", 1, True)], 1, 1, None)["cost"] is None


def test_open_attempts_count_only_for_requests():
    done = [attempt("a", 1, True), attempt("a", 2, False)]
    lost = [attempt("b", 1, True), attempt("b", 2, False, open="no reply")]
    found = compute_statistics(done + lost, 2, 1, None)
    assert found["open attempts"] == 1
    assert found["AVG"] == pytest.approx(0.75)
    assert found["TOP"] == {"1": 0.75, "2": 1.0}
    assert found["requests"] == 4
    assert compute_statistics([attempt("b", 1, False, open="no reply")], 1, 1, None)["AVG"] is None


def test_published_rpsr_without_a_fix_or_with_an_equal_one_is_unknown():
    assert compute_statistics([attempt("a", 1, False, patch=3)], 1, 1, None)["RPSR published"] is None
    assert compute_statistics([attempt("a", 1, False, patch=0, fix=0)], 1, 1, None)["RPSR published"] is None
    found = compute_statistics([attempt("a", 1, False, patch=3, fix=2)], 1, 1, None)
    assert found["RPSR published"] == pytest.approx(1.5)


def test_intervals_hold_the_figure():
    made = [attempt(f"{i}", n, (i + n) % 3 == 0, patch=i, fix=2) for i in range(30) for n in (1, 2)]
    found = compute_statistics(made, 2, 1, None)
    for name, value in {"AVG": found["AVG"], "TOP-2": found["TOP"]["2"], "RPSR": found["RPSR"]}.items():
        low, high = found["95% intervals"][name]
        assert low < value < high


def test_runs_are_compared_over_common_items():
    weak = [attempt(f"{i}", n, i < 4, patch=4, fix=2) for i in range(20) for n in (1, 2)]
    strong = [attempt(f"{i}", n, i < 18, patch=2, fix=2) for i in range(20) for n in (1, 2)]
    found = compare_runs({"weak": weak, "strong": strong})
    assert list(found) == ["AVG", "TOP-2", "RPSR"]
    assert found["AVG"].differences[0].difference == pytest.approx(-0.7)
    assert found["AVG"].differences[0].permutation_p < 0.001
    assert found["RPSR"].n == 4
    assert found["RPSR"].differences[0].difference == pytest.approx(1)
    three = compare_runs({"weak": weak, "strong": strong, "again": strong})["AVG"].differences
    raw = found["AVG"].differences[0].permutation_p
    assert three[0].permutation_p >= 2 * raw * 0.5  # Holm's correction over three pairs
    with pytest.raises(InputError, match="different items"):
        compare_runs({"weak": weak, "strong": strong[:-2]})
    assert compare_runs({"weak": weak}) == {}
