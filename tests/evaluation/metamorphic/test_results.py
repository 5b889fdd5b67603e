"""Results of tools: refused files, and counts of successes on each item."""

import json

import pytest

from simllm.evaluation.metamorphic.results import ItemFacts, Recorded, count_successes, read_recorded


def test_facts_about_the_variant_of_all_rules_are_not_those_of_a_single_rule():
    counts = {("", arm, "item"): ((1, 1), (0, 1)) for arm in ("", "rule-a", "rule-b")}
    facts = {
        ("", "item"): ItemFacts(2.5, "easy", ("rule-a",), unchanged=True),
        ("rule-a", "item"): ItemFacts(rules=("rule-a",)),
    }
    found = {
        arm: count_successes(Recorded([], counts, facts), arm)[0][""][0] for arm in ("", "rule-a", "rule-b")
    }
    assert [one.unchanged for one in found.values()] == [True, False, False]
    assert [one.rules for one in found.values()] == [("rule-a",), ("rule-a",), None]
    assert {(one.nll, one.group) for one in found.values()} == {(2.5, "easy")}


@pytest.mark.parametrize("step", [1, -1])
def test_facts_are_collected_from_all_lines_of_an_item(tmp_path, step):
    rows = [
        {"id": "a", "side": "original", "success": True, "nll": 2.5, "unchanged": True},
        {"id": "a", "side": "transformed", "success": True, "group": "easy", "rules": ["rule-a"]},
    ]
    file = tmp_path / "results.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows[::step]))
    assert read_recorded(file).facts == {("", "a"): ItemFacts(2.5, "easy", ("rule-a",), unchanged=True)}
