import json

import pytest

from simllm.cli.main import main
from simllm.evaluation import contrast
from simllm.metrics.text.words import jaccard


def test_word_overlap_wins_half_of_the_balanced_and_no_adversarial_triples():
    triples = contrast.clean_triples(contrast.load())
    won = contrast.rewording_wins(jaccard, triples)
    found = contrast.mean_by_label(triples.forms, won)
    assert found["balanced"] == pytest.approx(0.5, abs=0.05)
    assert found["adversarial"] < 0.05


ROWS = [
    ("opens the file", "opens the named file", "closes the file", "verb", "balanced"),
    ("opens the file", "closes the file", "opens the file", "verb", "adversarial"),
    ("adds one", "adds 1", "adds two", "number", "balanced"),
]


def test_accuracy_overall_by_form_and_by_kind(tmp_path, monkeypatch, capsys):
    """The rewording wins against the change in the first triple, loses in the second, and ties in the third.

    The Jaccard index of the rewording and the reference is 3/4, 1/2 and 1/3; that of the change and the
    reference is 1/2, 1 and 1/3.
    """
    fields = ("reference", "rewording", "change", "kind", "form")
    file = tmp_path / "triples.jsonl"
    file.write_text("".join(json.dumps(dict(zip(fields, row, strict=True))) + "\n" for row in ROWS))
    metrics = "jaccard,word-vectors,column=use"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main(["evaluate", "contrast", "--triples", str(file), "--metrics", metrics, "-f", "json"]) == 0
    printed, warned = capsys.readouterr()
    result = json.loads(printed)
    expected = {"all": 0.5, "balanced": 0.75, "adversarial": 0, "verb": 0.5, "number": 0.5}
    assert result["triples"] == 3
    assert result["rows"] == [{"metric": name, **expected} for name in ("word overlap", "jaccard")]
    assert result["without word-vectors"] == "name it as word-vectors=CORPUS"
    assert "column=use is left out: a column holds the scores of rated pairs" in warned


def test_kind_named_like_a_form_has_its_own_column(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    row = dict(zip(("reference", "rewording", "change"), ROWS[0], strict=False))
    rows = [{**row, "kind": "all", "form": "balanced"}, {**row, "kind": "balanced", "form": "adversarial"}]
    file = tmp_path / "triples.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["evaluate", "contrast", "--triples", str(file), "--metrics", "jaccard", "-f", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["rows"][0]
    assert list(found) == ["metric", "all", "balanced", "adversarial", "kind all", "kind balanced"]
