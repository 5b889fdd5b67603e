import itertools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import simllm
from simllm import InputError
from simllm.cli.main import main
from simllm.evaluation import ratings
from simllm.evaluation.correlation import correlate
from simllm.metrics import cache as score_cache
from simllm.metrics import registry
from simllm.metrics.cache import CachedMetric
from simllm.metrics.interface import FunctionMetric, pair_scores
from simllm.metrics.text import words
from simllm.metrics.text.readable_texts import TextScorer

GOOD = {"reference": "a b", "candidate": "a c", "rating": 2}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def quarters():
    """Return a metric whose score is a quarter of the candidate's length; scores are cached."""
    return CachedMetric(
        FunctionMetric("length", "length", lambda c, r: np.array([len(text) / 4 for text in c]))
    )


@pytest.fixture
def rated(comments, tmp_path):
    rows = [{"reference": a, "candidate": b, "rating": len(a)} for a, b in itertools.pairwise(comments[:9])]
    file = tmp_path / "ratings.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_correlations_on_haque(real_files):
    names = ["bleu", "bleu-1", "rouge-1", "rouge-l", "jaccard", "tf-idf", "column=use_cosine_dict"]
    rows = {row.metric: row for row in correlate(*real_files("rated/haque2022.jsonl"), names).rows}
    # BLEU's published column has more ties (1.25e-231 is rounded); ROUGE's values differ slightly
    assert rows["bleu"].spearman == pytest.approx(0.7331, abs=5e-4)
    for name, rho in {"bleu-1": 0.7639, "jaccard": 0.7927, "tf-idf": 0.7306}.items():
        assert rows[name].spearman == pytest.approx(rho, abs=5e-5)
    assert rows["column=use_cosine_dict"].spearman == pytest.approx(0.8372, abs=5e-5)
    assert rows["rouge-l"].spearman == pytest.approx(0.8152, abs=2e-3)
    assert rows["rouge-1"].spearman == pytest.approx(0.8016, abs=3e-3)
    for row in rows.values():
        assert row.n == 210
        assert row.low < row.spearman < row.high
        assert row.p_value < 0.001


def test_a_model_and_its_signature(rated, model_folder):
    (row,) = correlate(rated, ["simllm"], model_folder).rows
    assert row.signature.startswith("model:")
    assert (row.metric, row.n) == ("simllm", 8)
    assert -1 <= row.spearman <= 1


def test_constant_metric_is_left_out(rated):
    rows = [{**json.loads(line), "candidate": "the same"} for line in rated.read_text().splitlines()]
    texts = itertools.cycle(["the same", "as they are"])
    rows = [{**row, "reference": text} for row, text in zip(rows, texts, strict=False)]
    rows = [{**row, "metrics": {"kept": 0.5}} for row in rows]
    rated.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = correlate(rated, ["jaccard", "column=kept"])
    assert [row.metric for row in result.rows] == ["jaccard"]
    assert result.missing == {"column=kept": "it gives all pairs of ratings the same score"}


def test_unavailable_metric_is_left_out_with_a_remedy(rated):
    result = correlate(rated, ["jaccard", "sentence-bert", "column=use"])
    assert [row.metric for row in result.rows] == ["jaccard"]
    assert result.missing == {
        "sentence-bert": "name it as sentence-bert=MODEL",
        "column=use": "ratings has no complete column use; it has none",
    }


def test_metric_with_non_finite_scores_is_left_out(rated, monkeypatch):
    monkeypatch.setattr(words, "load_jaccard", lambda: TextScorer(lambda c, r: np.full(len(c), np.nan)))
    result = correlate(rated, ["jaccard", "bleu-1"])
    assert [row.metric for row in result.rows] == ["bleu-1"]
    assert result.missing == {"jaccard": "some of its scores of ratings are not finite"}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["blue"], "metric 'blue': expected one of simllm, simllm-same, bleu, "),
        (["bertscore"], "bertscore: name it as bertscore=MODEL"),
        (["column="], "column=: name it as column=NAME"),
        ([], "no metric is named"),
    ],
)
def test_no_metric_is_an_error(rated, names, message):
    with pytest.raises(InputError, match=message):
        correlate(rated, names)


def test_scores_are_computed_once_for_the_same_texts_and_signature(cache):
    calls = []

    def compute(candidates, references):
        calls.append(candidates)
        return np.array([len(c) / 3 for c in candidates])

    metric = CachedMetric(FunctionMetric("length", "length|version:1", compute))
    first = pair_scores(metric, ["a", "bb"], ["x", "y"])
    assert pair_scores(metric, ["a", "bb"], ["x", "y"]).tolist() == first.tolist()
    assert first == pytest.approx([1 / 3, 2 / 3], abs=1e-12)
    assert len(calls) == 1
    pair_scores(metric, ["a", "b"], ["bx", "y"])
    pair_scores(CachedMetric(FunctionMetric("length", "length|version:2", compute)), ["a", "bb"], ["x", "y"])
    assert len(calls) == 3


def test_scores_that_differ_by_rounding_noise_are_equal(cache):
    given = [1.0, 0.9999999999999998, 0.1 + 0.2, 0.3, 1.25e-231]
    metric = CachedMetric(FunctionMetric("noisy", "noisy", lambda *_: np.array(given)))
    for _ in range(2):  # the second run reads the cache
        assert pair_scores(metric, ["a"] * 5, ["b"] * 5).tolist() == [1, 1, 0.3, 0.3, 1.25e-231]


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "[1, 2",
        "{}",
        "[1.5]",
        "[[1.0, 2.0, 3.0], []]",
        "[[1.0, 2.0], 3]",
        "[1.0, 2.0]",
        "[[1.0], [2.0]]",
        '[["1", "2"], []]',
        "[[true, false], []]",
        "\udcff",
    ],
)
def test_damaged_cache_file_is_recomputed(cache, damage):
    metric = quarters()
    assert pair_scores(metric, ["a", "bb"], ["x", "y"]).tolist() == [0.25, 0.5]
    (file,) = cache.rglob("*.json")
    file.write_text(damage, errors="surrogateescape")
    assert pair_scores(metric, ["a", "bb"], ["x", "y"]).tolist() == [0.25, 0.5]
    assert json.loads(file.read_text()) == [[0.25, 0.5], []]


@pytest.mark.parametrize("place", ["a_file", "closed", "no_home"])
def test_unwritable_cache_is_no_error(place, tmp_path, monkeypatch):
    (tmp_path / "a_file").touch()
    (tmp_path / "closed").mkdir(mode=0o500)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / place))
    if place == "closed":  # even root cannot write here
        monkeypatch.setattr(Path, "mkdir", lambda *_, **__: (_ for _ in ()).throw(PermissionError()))
    if place == "no_home":
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    metric = quarters()
    assert pair_scores(metric, ["a", "bb"], ["x", "y"]).tolist() == [0.25, 0.5]


@pytest.mark.usefixtures("cache")
def test_editing_simllm_invalidates_the_cache(tmp_path, monkeypatch):
    package = tmp_path / "simllm"
    shutil.copytree(Path(simllm.__file__).parent, package, ignore=shutil.ignore_patterns("default_model"))
    monkeypatch.setattr(simllm, "__file__", str(package / "__init__.py"))
    calls = []
    metric = CachedMetric(
        FunctionMetric("length", "length", lambda c, r: calls.append(c) or np.array([1.0, 2.0]))
    )
    for edits in (["metrics/text/words.py"], ["text.py"], []):
        for file in edits:
            with (package / file).open("a") as code:
                code.write("# edited\n")
        score_cache._code_version.cache_clear()
        pair_scores(metric, ["a", "bb"], ["x", "y"])
    score_cache._code_version.cache_clear()
    assert len(calls) == 2


def test_signature_depends_on_the_corpus(tmp_path):
    signatures = []
    for line in ("gets the name\n", "gets the key\n"):
        (tmp_path / "corpus.txt").write_text(line)
        metric = registry.load(f"word-vectors={tmp_path}/corpus.txt")
        signatures.append(metric.signature)
    assert signatures[0] != signatures[1]
    assert signatures[0].startswith("word-vectors|corpus:")
    assert "|tokenizer:" in signatures[0]


RATED_CSV = """id,human,model,ann,bo,length
1,returns the name,returns a name,4,3,2
2,opens the file,closes it,1,n/a,3
3,adds two lists,adds lists,,4,2
4,sorts the keys,prints,null,N/A,1
5,removes all,stops,1,2,
"""


def test_tables_of_several_raters_with_gaps(tmp_path):
    (tmp_path / "study.csv").write_text(RATED_CSV)
    (tmp_path / "study.tsv").write_text(RATED_CSV.replace(",", "\t"))
    lines = [dict(zip(RATED_CSV.split()[0].split(","), row.split(","), strict=True))
             for row in RATED_CSV.splitlines()[1:]]  # fmt: skip
    for line in lines:  # as a program writes them
        for rater in ("ann", "bo"):
            line[rater] = int(line[rater]) if line[rater].isdigit() else None
    (tmp_path / "study.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for suffix in ("csv", "tsv", "jsonl"):
        with pytest.warns(
            UserWarning, match=f"1 of 5 rows of study.{suffix} have no rating and are left out"
        ):
            rated = ratings.load(tmp_path / f"study.{suffix}", ("human", "model", "ann", "bo"))
        assert rated.values.tolist() == [3.5, 1, 4, 1.5]
        np.testing.assert_equal(rated.raters, [[4, 3], [1, np.nan], [np.nan, 4], [1, 2]])
        assert rated.candidates[1] == "closes it"
        if suffix != "jsonl":  # numbers of other columns are scores; the last cell is a gap
            np.testing.assert_equal(rated.columns["length"], [2, 3, 2, np.nan])


def test_a_table_with_the_default_columns_and_latex(tmp_path, capsys):
    rows = [f"text {i},{'text ' * i},{i}" for i in range(1, 9)]
    (tmp_path / "r&d.csv").write_text("\n".join(["reference,candidate,rating", *rows]) + "\n")
    words = ["evaluate", "correlation", "--ratings", str(tmp_path / "r&d.csv"), "--metrics", "chrf,bleu-1"]
    assert main([*words, "-f", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["pairs"] == 8
    assert main([*words, "-f", "latex"]) == 0
    table = capsys.readouterr().out
    assert "ratings of r\\&d.csv, 8 pairs" in table
    assert table.count(" & ") == 3 * 4
    assert "% signature of chrf: chrf|" in table


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            "human,model",
            "--columns human,model: expected the columns of reference, candidate and one or more",
        ),
        ("human,model,x", 'row 1: expected a number under "x"; it has id, human, model, ann, bo, length'),
        ("id,human,model", 'row 1: expected a number under "model", not "returns a name"'),
        ("human,model,ann,ann", "--columns human,model,ann,ann: names ann twice"),
    ],
)
def test_wrong_columns_are_one_line(tmp_path, capsys, columns, message):
    (tmp_path / "study.csv").write_text(RATED_CSV)
    words = ["evaluate", "correlation", "--ratings", str(tmp_path / "study.csv"), "--metrics", "jaccard"]
    assert main([*words, "--columns", columns]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
