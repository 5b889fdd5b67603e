"""Reading of the recorded results of tools."""

import json

import pytest

from simllm.evaluation.metamorphic.results import ItemFacts, read_recorded


@pytest.mark.parametrize("step", [1, -1])
def test_facts_are_collected_from_all_lines_of_an_item(tmp_path, step):
    rows = [
        {"id": "a", "side": "original", "success": True, "nll": 2.5, "unchanged": True},
        {"id": "a", "side": "transformed", "success": True, "group": "easy", "rules": ["rule-a"]},
    ]
    file = tmp_path / "results.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows[::step]))
    assert read_recorded(file).facts == {("", "a"): ItemFacts(2.5, "easy", ("rule-a",), unchanged=True)}
