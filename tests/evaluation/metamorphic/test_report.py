"""The parts of the report of a metamorphic study."""

from types import SimpleNamespace

from simllm.evaluation.metamorphic.report import worst_items
from simllm.evaluation.metamorphic.results import ItemOutcome


def test_items_without_known_code_do_not_take_the_places_of_the_worst():
    outcomes = [ItemOutcome(f"item{i}", (10, 10), (i, 10)) for i in range(9)]
    known = [f"item{i}" for i in range(3, 9)]
    study = SimpleNamespace(sources=dict.fromkeys(known, "a\n"), variants=dict.fromkeys(known, "b\n"))
    worst = worst_items(study, SimpleNamespace(study=SimpleNamespace(outcomes=outcomes)))
    assert [outcome.id for outcome, _ in worst] == known[:5]
    assert worst[0][1] == [("-", "a"), ("+", "b")]
