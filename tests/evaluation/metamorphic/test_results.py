"""Results of tools: refused files, counts of successes on each item, and the worst items of a report."""

import json
from types import SimpleNamespace

import pytest

from simllm.evaluation.metamorphic.report import worst_items
from simllm.evaluation.metamorphic.results import (
    ItemFacts,
    ItemOutcome,
    Recorded,
    count_successes,
    read_recorded,
)


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


def test_items_without_known_code_do_not_take_the_places_of_the_worst():
    outcomes = [ItemOutcome(f"item{i}", (10, 10), (i, 10)) for i in range(9)]
    known = [f"item{i}" for i in range(3, 9)]
    study = SimpleNamespace(sources=dict.fromkeys(known, "a\n"), variants=dict.fromkeys(known, "b\n"))
    worst = worst_items(study, SimpleNamespace(study=SimpleNamespace(outcomes=outcomes)))
    assert [outcome.id for outcome, _ in worst] == known[:5]
    assert worst[0][1] == [("-", "a"), ("+", "b")]
