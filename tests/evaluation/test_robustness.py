import json

import numpy as np
import pytest

from simllm import InputError
from simllm.cli.main import main
from simllm.evaluation.robustness import KINDS, Edits, make_edits, measure_robustness
from simllm.perturb.summaries import lexicon, rewording

SUMMARIES = [
    "Returns the first 2 arguments of the given method.",
    "Adds a listener to the window.",
    "Checks whether the file is open, then closes it.",
    "Copies the row to the table.",
    "The parser calls the handler and the filter.",
]


@pytest.fixture(scope="module")
def known():
    return lexicon.load()


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("case", "gets it", {"Gets it", "GETS IT", "Gets It"}),
        ("punctuation", "gets it , then stops .", {"gets it , then stops", "gets it then stops ."}),
        ("punctuation", "gets it", {"gets it .", "gets it"}),
        ("articles", "adds a key to the map", {"adds key to map"}),
        ("abbreviation", "reads the arg", {"reads the argument"}),
        ("numeral", "adds 2 values", {"adds 2 values", "adds two values"}),
        (
            "numeral",
            "encodes 2 values as utf - 8",
            {"encodes two values as utf - 8", "encodes 2 values as utf - 8"},
        ),
        ("numeral", "adds two values", {"adds two values", "adds 2 values"}),
    ],
)
def test_edits_that_keep_the_meaning(known, kind, text, expected):
    found = set(rewording.KINDS[kind](text, known, np.random.default_rng(0)))
    assert found == expected if kind != "abbreviation" else expected <= found


def test_a_typo_exchanges_two_letters_inside_a_word(known):
    (found,) = rewording.typos("gets values", np.random.default_rng(0))
    assert found != "gets values"
    assert sorted(found) == sorted("gets values")
    assert (found[:6], found[-1]) == ("gets v", "s")


def test_edits_cover_every_kind_and_depend_only_on_the_seed(known):
    made = make_edits(SUMMARIES, known, 1)
    assert made.texts == make_edits(SUMMARIES, known, 1).texts
    assert made.texts != make_edits(SUMMARIES, known, 2).texts
    assert set(made.kinds) == set(KINDS)
    for text, number in zip(made.texts, made.summary, strict=True):
        assert text != made.summaries[number]


@pytest.mark.parametrize(
    ("summaries", "message"),
    [
        (["a b", "A b "], "1 different summaries; the relations need at least 2"),
        (["xx", "yy"], "no edit that changes"),
    ],
)
def test_rejects_too_few_editable_texts(known, summaries, message):
    with pytest.raises(InputError, match=message):
        make_edits(summaries, known, 1)


def test_drop_auc_and_failures_by_hand():
    """The mean drop of scores, the AUC and the failures equal values that were computed by hand.

    Equal texts score 1, and unrelated texts 0.2. The edits that keep the meaning of "s" and "t" score 0.9 and
    0.3. The edits that change their meaning score 0.6 and 0.3. So "t" is a failure: its edit that changes the
    meaning does not score lower than its edit that keeps it.
    """
    made = Edits(
        ["s", "t"], np.array([0, 1, 0, 1]), ["s1", "t1", "s2", "t2"], ["case", "typo", "number", "number"]
    )
    of_edit = {"s": 1, "t": 1, "s1": 0.9, "t1": 0.3, "s2": 0.6, "t2": 0.3}

    def score(candidates, references):
        pairs = zip(candidates, references, strict=True)
        return np.array([0.2 if {c, r} == {"s", "t"} else of_edit[c] for c, r in pairs])

    result = measure_robustness(score, made, examples=5)
    assert result.drop == pytest.approx({"case": 0.1 / 0.8, "typo": 0.7 / 0.8, "number": 0.55 / 0.8})
    assert result.auc == pytest.approx((2 + 0 + 0.5) / 4)
    assert result.auc_of == pytest.approx({"case": 1, "typo": 0.25, "number": 2.5 / 4})
    assert [str(failure) for failure in result.failures] == ['"t": "t2" 0.300 is not below "t1" 0.300']


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "summaries.txt").write_text("\n".join(SUMMARIES))
    command = ["evaluate", "robustness", "--summaries", "summaries.txt", "--metrics", "jaccard"]
    assert main([*command, "--examples", "2", "-f", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["summaries"] == len(SUMMARIES)
    rows = {row["edit"]: row for row in result["rows"]}
    assert rows.keys() == set(KINDS)
    assert rows["roles"]["drop"] == 0  # the same words in another order
    assert rows["case"]["drop"] > 0  # words are compared without stemming
    assert "is not below" in result["failure 2 of jaccard"]


def test_long_texts_and_long_numbers_are_edited_fast(known):
    """Only 200 words of a long text are used; to try all edits of thousands of words would take minutes."""
    made = make_edits(["gets two values if they are set " * 2000, f"adds {'9' * 5000} to the list"], known, 1)
    assert max(len(text.split()) for text in made.summaries) == 200
    assert "number" in made.kinds


def test_rejects_a_negative_seed(known):
    with pytest.raises(InputError, match="seed -1: expected 0 or a positive number"):
        make_edits(SUMMARIES, known, -1)
