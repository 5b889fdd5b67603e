"""Figures of a run, such as pass rates, equal reference results and published numbers."""

import pytest

from simllm.llm.limits import Price
from simllm.repair.items import RepairItem
from simllm.repair.settings import RunSettings
from simllm.repair.summary import compute_statistics, summarize, tokens_and_cost
from tests.repair.made_attempts import attempt


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


def test_open_attempts_count_only_for_requests():
    done = [attempt("a", 1, True), attempt("a", 2, False)]
    lost = [attempt("b", 1, True), attempt("b", 2, False, open="no reply")]
    found = compute_statistics(done + lost, 2, 1, None)
    assert found["open attempts"] == 1
    assert found["AVG"] == pytest.approx(0.75)
    assert found["TOP"] == {"1": 0.75, "2": 1.0}
    assert found["requests"] == 4
    assert compute_statistics([attempt("b", 1, False, open="no reply")], 1, 1, None)["AVG"] is None


def test_tokens_that_are_not_reported_stay_unknown():
    price = Price(3, 15)
    found = tokens_and_cost([attempt("a", 1, True), attempt("b", 1, True)], price)
    assert found["cost"] == pytest.approx((20 * 3 + 14 * 15) / 1e6)
    found = tokens_and_cost([attempt("a", 1, True), attempt("b", 1, True, tokens=(10, None))], price)
    assert (found["prompt tokens"], found["completion tokens"], found["cost"]) == (20, None, None)
    assert tokens_and_cost([attempt("a", 1, True)], None)["cost"] is None
