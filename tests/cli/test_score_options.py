"""Each option of `simllm score` has an effect on each way of scoring, or is refused."""

import csv
import gzip
import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from simllm import InputError
from simllm.analysis.sharded_scoring import ShardSettings
from simllm.cli.main import main
from simllm.cli.score_options import Options

OTHER = {str: "other", int: 7, float: 0.25, bool: True, Path: Path("other"), list: ["other"]}


def other_value(field):
    """Return a value that is not the default of an option."""
    return next(OTHER[kind] for kind in OTHER if kind.__name__ in str(field.type))


@pytest.mark.parametrize("way", ["one file", "metrics", "code metrics", "several files"])
def test_no_option_is_without_effect(way, model_folder, tmp_path, monkeypatch, capsys):
    for name in ("a", "b"):
        row = {"candidate": "f(1)", "reference": "f(2)", "source": "f(3)", "language": "python"}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    arguments = {
        "one file": ["--jsonl", "a.jsonl", "--model", str(model_folder)],
        "metrics": ["--jsonl", "a.jsonl", "--metrics", "simllm,rouge-1", "--model", str(model_folder)],
        "code metrics": ["--jsonl", "a.jsonl", "--metrics", "lemod,simllm", "--model", str(model_folder)],
        "several files": ["--jsonl", "*.jsonl", "-o", "out", "--model", str(model_folder)],
    }[way]
    made, read = [], set()

    class Recorded(Options):
        def __init__(self, **values):
            super().__init__(**values)
            made.append(self)

        def check(self, has_several_files):
            super().check(has_several_files)
            read.clear()  # the check reads options only to refuse them

        def __getattribute__(self, name):
            read.add(name)
            return super().__getattribute__(name)

    monkeypatch.setattr("simllm.cli.score.Options", Recorded)
    assert main(["score", *arguments]) == 0, capsys.readouterr().err
    (options,) = made
    used = read | {"jsonl"}  # the pattern is expanded before the check
    if way == "several files":
        used |= {field.name for field in fields(ShardSettings)}
    without_effect = set()
    for field in fields(Options):
        if field.name not in used:
            try:
                replace(options, **{field.name: other_value(field)}).check(way == "several files")
            except InputError:
                continue
            without_effect.add(field.name)
    assert without_effect == set()


ROWS = [
    {"key": "a", "model": "adds two, lists", "human": "combines 2 arrays", "body": "a + b"},
    {"key": "b", "model": "", "human": "closes the file", "body": "f.close()"},
    {"key": "c", "model": "opens it", "human": "opens the file", "body": "open(f)"},
]


def write_tables(folder):
    (folder / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    for name, delimiter in {"t.csv": ";", "t.tsv": "\t"}.items():
        with (folder / name).open("w", newline="") as file:
            writer = csv.DictWriter(file, ROWS[0], delimiter=delimiter)
            writer.writeheader()
            writer.writerows(ROWS)


NAMED = ("--candidate-field", "model", "--reference-field", "human", "--id-field", "key")


@pytest.mark.parametrize(
    "more",
    [(), ("--metrics", "jaccard"), ("--against", "code", "--code-field", "body")],
    ids=["learned", "metrics", "code"],
)
def test_tables_have_the_scores_of_json_lines(tmp_path, monkeypatch, capsys, model_folder, more):
    monkeypatch.chdir(tmp_path)
    write_tables(tmp_path)
    model = [] if "--metrics" in more else ["--model", str(model_folder)]
    found = []
    for option, file in (("--jsonl", "t.jsonl"), ("--table", "t.csv"), ("--table", "t.tsv")):
        assert main(["score", option, file, *NAMED, *more, *model, "-f", "json"]) == 0
        found.append(capsys.readouterr().out)
    assert found[0] == found[1] == found[2]
    assert [row["id"] for row in json.loads(found[0])["rows"]] == ["a", "b", "c"]


def test_several_tables(tmp_path, monkeypatch, capsys, model_folder):
    monkeypatch.chdir(tmp_path)
    write_tables(tmp_path)
    (tmp_path / "U.CSV.GZ").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    words = ["score", "--table", "*.[cC]*", *NAMED, "--model", str(model_folder), "-o", "out"]
    assert main(words) == 0
    assert sorted(path.name for path in (tmp_path / "out").glob("*.tsv")) == ["U.tsv", "t.tsv"]
    capsys.readouterr()
    assert main(["score", "--table", "t.*", *NAMED, "--model", str(model_folder), "-o", "more"]) == 2
    assert "both would be written to more/t.tsv" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("key;model\na;b\n", 't.csv, row 1: expected a text under "human"; it has key, model'),
        ("key;model;human\n", "t.csv: empty; expected a JSON object per line, or a table with a header and"),
        ("key;model;human\na;b\n", "t.csv, row 1: 2 values for 3 columns"),
    ],
)
def test_a_wrong_table_is_one_line(tmp_path, monkeypatch, capsys, content, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(content)
    assert main(["score", "--table", "t.csv", *NAMED]) == 2
    assert message in capsys.readouterr().err
