"""Counts of the successes of a tool on each item."""

from simllm.evaluation.metamorphic.results import ItemFacts, Recorded, count_successes


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
