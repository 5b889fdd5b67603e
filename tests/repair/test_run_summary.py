"""Figures of a run, such as pass rates, equal reference results and published numbers."""

from dataclasses import replace

import pytest

from simllm.errors import InputError
from simllm.llm.limits import Price
from simllm.repair.items import RepairItem
from simllm.repair.settings import RunSettings
from simllm.repair.summary import compute_statistics, read_summary, summarize, tokens_and_cost
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


def warnings_of(made, items, **settings):
    attempts = [
        replace(one, rounds=tuple(replace(each, reply="x = 1") for each in one.rounds)) for one in made
    ]
    return summarize(attempts, items, RunSettings("M", **settings), 1, {})["warnings"]


def test_replies_that_are_cut_off_are_counted():
    one = attempt("a", 1, False)
    cut = replace(one, rounds=(replace(one.rounds[0], verdict="CE", is_cut=True),))
    assert warnings_of([cut], [RepairItem("a", "")])[0].startswith("all 1 replies are cut off")
    whole = replace(one, rounds=(replace(one.rounds[0], verdict="CE"),))
    assert warnings_of([whole], [RepairItem("a", "")])[0].startswith("no reply compiles")


def test_patches_of_which_rpsr_says_nothing_are_named():
    items = [RepairItem("a", "", fix="x"), RepairItem("b", "")]
    attempts = [attempt("a", 1, True, patch=3, fix=1), attempt("b", 1, True, patch=3)]
    assert warnings_of(attempts, items) == ["1 of 2 items have no fix: RPSR leaves them out"]
    assert (
        "1 of 1 fixes are invisible in the trees of libclang (a)"
        in warnings_of(attempts, items, trees="libclang")[-1]
    )
    assert warnings_of(attempts[:1], items[:1]) == []
    large = [attempt("a", 1, True, patch=3), attempt("a", 2, True), attempt("a", 3, True, patch=3, fix=2)]
    assert warnings_of(large, items[:1]) == [
        "2 of 3 patches are not measured, because a tree is too large: RPS and RPSR leave them out"
    ]


def test_tiers_have_any_name():
    """int() refuses numbers of more than 4,300 digits."""
    tiers = ["T10", "T9", "9" * 5000, "", None]
    items = [RepairItem(str(n), "", tier=tier) for n, tier in enumerate(tiers)]
    attempts = [attempt(item.id, 1, True, patch=0) for item in items]
    found = summarize(attempts, items, RunSettings("M"), 1, {})
    assert list(found["tiers"]) == ["T9", "T10", "9" * 5000, "(no tier)"]
    assert "2 of 5 items have no tier" in found["warnings"]


def test_a_run_without_a_summary_has_not_ended(tmp_path):
    with pytest.raises(InputError, match=r"has no summary.json; the run has not ended"):
        read_summary(tmp_path)
