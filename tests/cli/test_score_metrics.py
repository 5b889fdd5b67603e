"""`simllm score --metrics`: one column for each metric of the registry."""

import json

import pytest

from simllm import SimLLM, metrics
from simllm.cli.main import main


@pytest.fixture(autouse=True)
def pairs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    rows = [{"candidate": "adds two lists", "reference": "combines two lists", "key": 7}]
    rows += [{"candidate": "opens it", "reference": "opens it", "key": {"a": 1}}]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return rows


def score(capsys, *arguments):
    status = main(["score", *map(str, arguments)])
    done = capsys.readouterr()
    return status, done.out, done.err


def test_each_metric_gets_a_column(pairs, model_folder, capsys):
    options = ("--id-field", "key", "--metrics", "simllm,jaccard,rouge-l", "-f", "json")
    status, out, _ = score(capsys, "--jsonl", "pairs.jsonl", *options, "--model", model_folder)
    assert status == 0
    result = json.loads(out)
    assert [row["id"] for row in result["rows"]] == [7, {"a": 1}]
    assert [row["jaccard"] for row in result["rows"]] == [0.5, 1.0]
    assert result["mean jaccard"] == 0.75
    candidates, references = ([row[side] for row in pairs] for side in ("candidate", "reference"))
    learned = SimLLM(model_folder).score(candidates, references)
    assert [row["simllm"] for row in result["rows"]] == pytest.approx(learned.values)
    assert result["signature of simllm"] == learned.signature
    rouge = metrics.load("rouge-l").score(list(map(metrics.Example, candidates, references)))
    assert [row["rouge-l"] for row in result["rows"]] == rouge.values.tolist()


def test_a_tsv_table_has_the_metrics_as_columns(capsys):
    words = ("a b", "a c", "--metrics", "jaccard,bleu-1", "-f", "tsv")
    status, out, err = score(capsys, *words)
    assert status == 0
    assert out.splitlines()[0] == "jaccard\tbleu-1\tcandidate\treference"
    signatures = [metrics.load(name).signature for name in ("jaccard", "bleu-1")]
    assert err.splitlines() == [
        f"simllm: 1 pair, mean jaccard 0.3333, {signatures[0]}",
        f"simllm: 1 pair, mean bleu-1 0.5000, {signatures[1]}",
    ]
    assert score(capsys, *words, "-q") == (0, out, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--metrics", "nix"], "metric 'nix': expected one of simllm, simllm-same, bleu"),
        (["--metrics", "bertscore"], "metric bertscore: name it as bertscore=MODEL"),
        (
            ["--metrics", "column=x"],
            "metric column=x: a column holds the scores of rated pairs",
        ),
        (["--metrics", "jaccard", "--resume"], "--resume does not go with --metrics"),
        (["--metrics", "jaccard", "--on-long", "window"], "--on-long does not go with --metrics"),
        (["--metrics", "jaccard", "--as-published"], "--as-published goes with metrics for code"),
        (["--metrics", "jaccard", "--largest-tree", "9"], "--largest-tree goes with metrics for code"),
        (["--metrics", ""], "metric '': expected one of simllm"),
    ],
)
def test_bad_choices_get_one_line(capsys, arguments, message):
    status, out, err = score(capsys, "a b", "a c", *arguments)
    assert (status, out) == (2, "")
    assert err.startswith(f"simllm: error: {message}")
    assert err.count("\n") == 1
