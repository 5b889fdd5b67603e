"""Several variants of an item."""

import json

import pytest

from simllm import InputError
from simllm.cli.main import main
from simllm.perturb.code.variants import RewritePlan, vary_items

SOURCE = """def f(xs, n):
    for x in xs:
        if x == 1 and n != 2:
            return x
        else:
            n += 1
"""
ITEM = {"id": "a", "language": "python", "source": SOURCE}


def test_variants_have_distinct_texts_and_the_first_is_the_usual_one():
    rows = list(vary_items([ITEM], RewritePlan(variants=12)))
    assert [row["variant"] for row in rows] == list(range(12))
    texts = {row["text"] for row in rows}
    assert len(texts) == 12
    assert SOURCE not in texts
    assert rows[0]["text"] == next(vary_items([ITEM], RewritePlan()))["text"]
    assert rows == list(vary_items([ITEM], RewritePlan(variants=12)))
    others = list(vary_items([ITEM], RewritePlan(variants=12, seed=100)))
    assert rows[0] == others[0]
    assert texts != {row["text"] for row in others}


def test_a_source_may_have_fewer_variants(tmp_path, capsys):
    plan = RewritePlan(("swap-equals",), variants=5)
    assert len(list(vary_items([ITEM], plan))) == 3  # both places, or one of them
    assert [row["status"] for row in vary_items([{**ITEM, "source": "x = 1\n"}], plan)] == ["unchanged"]
    file = tmp_path / "items.jsonl"
    file.write_text(json.dumps(ITEM) + "\n")
    given = ["perturb", "code", "--jsonl", str(file), "--rules", "swap-equals", "--variants", "5"]
    assert main([*given, "-o", str(tmp_path / "out.jsonl")]) == 0
    assert "1 of 1 rewritten sources have fewer than 5 different variants" in capsys.readouterr().err


@pytest.mark.parametrize("number", [0, -1, 1001])
def test_the_number_of_variants_is_checked(number):
    with pytest.raises(InputError, match="expected a number from 1 to 1,000"):
        RewritePlan(variants=number)


def test_variants_go_with_items_alone(tmp_path, capsys):
    (tmp_path / "a.py").write_text(SOURCE)
    assert main(["perturb", "code", str(tmp_path), "--variants", "2", "-o", str(tmp_path / "out")]) == 2
    assert "--variants goes with --jsonl, and without --each-rule" in capsys.readouterr().err


def test_names_of_an_item_stay_in_all_its_variants():
    rows = vary_items([{**ITEM, "names": {"n": "bound"}}], RewritePlan(("rename-parameter",), variants=6))
    assert {row["names"].get("n", "bound") for row in rows} == {"bound"}
