"""`simllm score` and `simllm frequencies` for code: JSON lines in, one column for each metric out."""

import json
import os

import pytest

from tests.command import process, run

SOURCE = "int half(int x) {\n  // TODO: halve\n  return x;\n}\n"
FIXED = "int half(int x) {\n  return x / 2;\n}\n"


@pytest.fixture
def fixes(tmp_path):
    """Write three items: a reply with correct code, an unchanged candidate, and a reply without code."""
    rows = [
        {
            "id": 1,
            "source": SOURCE,
            "reference": FIXED,
            "reply": f"So:\n```java\n{FIXED}```",
            "language": "java",
        },
        {"id": 2, "source": SOURCE, "reference": FIXED, "candidate": SOURCE, "language": "java"},
        {"id": 3, "source": SOURCE, "reference": FIXED, "reply": "I cannot do that.", "language": "java"},
    ]
    (tmp_path / "fixes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "fixes.jsonl"


def test_metrics_for_code_in_a_new_process(fixes):
    names = "exact-match,lemod,crystalbleu-diff,rpsr,jaccard"
    done = process("score", "--metrics", names, "--jsonl", fixes, "--id-field", "id", "-f", "json")
    assert done.returncode == 0
    assert "CrystalBLEU ignores 500 n-grams; the references have fewer" in done.stderr
    assert "replies without code: 1 of 2; they count as empty candidates (3)" in done.stderr
    assert "jaccard: 1 of 3 pairs have a text without words" in done.stderr
    assert done.stderr.count("\n") == 3
    result = json.loads(done.stdout)
    assert [row["id"] for row in result["rows"]] == [1, 2, 3]
    assert [row["exact-match"] for row in result["rows"]] == [1, 0, 0]
    assert [row["lemod"] for row in result["rows"]] == [1, 0, 0]
    assert [row["rpsr"] for row in result["rows"]][:2] == [1, 0]
    assert result["rows"][0]["candidate"] == FIXED.rstrip()
    assert result["replies without code"] == 1
    assert result["mean exact-match"] == pytest.approx(1 / 3)
    assert result["better rpsr"] == "lower"
    assert result["signature of lemod"].startswith("lemod|version:")


def test_an_empty_cell_of_a_table_has_the_language_of_the_option(tmp_path):
    file = tmp_path / "fixes.csv"
    file.write_text("candidate,reference,language\nreturn x,return x,\nint y;,int z;,java\n")
    words = ("score", "--table", file, "--metrics", "exact-match")
    assert json.loads(run(*words, "--language", "python", "-f", "json").stdout)["mean exact-match"] == 0.5
    assert f"{file}, row 1: language '': expected one of" in run(*words).stderr


def test_ambiguous_replies_are_named(tmp_path):
    block = "```java\n{}```\n".format
    rows = [
        {"source": SOURCE, "reference": FIXED, "reply": block(SOURCE.replace("x;", "x - x;")) + block(FIXED)},
        {"source": SOURCE, "reference": FIXED, "reply": block(FIXED) + block("print(half(4));\n" * 9)},
        {"source": SOURCE, "reference": FIXED, "reply": f"<think>{block(SOURCE)}</think>{block(FIXED)}"},
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row | {"language": "java"}) + "\n" for row in rows))
    done = process("score", "--metrics", "exact-match", "--jsonl", file, "-f", "json")
    result = json.loads(done.stdout)
    assert [row["exact-match"] for row in result["rows"]] == [1, 1, 1]
    assert (result["replies without code"], result["ambiguous replies"]) == (0, 1)
    assert result["ambiguous replies, named"] == "line 1"
    assert "ambiguous replies: 1 of 3; several blocks of code fit equally well" in done.stderr


def test_replies_as_published(tmp_path):
    """The published code takes the longest section between fences, whatever its label."""
    reply = f"```java\n{FIXED}```\nIt prints:\n```\n1\n2\n3\n4\n```\n"
    file = tmp_path / "rows.jsonl"
    row = {"source": SOURCE, "reference": FIXED, "reply": reply, "language": "java"}
    file.write_text(json.dumps(row) + "\n")
    options = ["--metrics", "exact-match", "--jsonl", file, "-f", "json"]
    assert json.loads(run("score", *options).stdout)["mean exact-match"] == 1
    assert json.loads(run("score", *options, "--as-published").stdout)["mean exact-match=as-published"] == 0
    file.write_text(json.dumps(row | {"language": "go"}) + "\n")
    done = run("score", *options, "--as-published")
    assert (done.returncode, done.stderr.count("rows.jsonl, line 1: language 'go'")) == (2, 1)


def test_examples_without_a_score_are_left_out_of_the_mean(tmp_path):
    row = {"source": FIXED, "reference": FIXED, "candidate": SOURCE}
    (tmp_path / "same.jsonl").write_text(json.dumps(row) + "\n")
    done = run(
        "score", "--metrics", "rpsr", "--language", "java", "--jsonl", tmp_path / "same.jsonl", "-f", "json"
    )
    result = json.loads(done.stdout)
    assert result["rows"][0]["rpsr"] is None
    assert (result["mean rpsr"], result["left out of mean rpsr"]) == (None, 1)


def test_values_as_published(fixes):
    options = ["--metrics", "lemod,rps", "--as-published", "--jsonl", fixes, "-f", "json"]
    result = json.loads(run("score", *options).stdout)
    assert [row["lemod=as-published"] for row in result["rows"]] == [1, 0, 0.4]
    assert "rps" in result["rows"][0]


def test_largest_tree(fixes):
    options = ["--metrics", "lemod,rpsr", "--largest-tree", "3", "--jsonl", fixes, "-f", "json"]
    result = json.loads(run("score", *options).stdout)
    assert [row["rpsr=3"] for row in result["rows"]] == [None] * 3
    assert result["left out of mean rpsr=3"] == 3


def test_shared_ngrams_of_a_folder_are_ignored(fixes, tmp_path):
    (tmp_path / "code" / "inner").mkdir(parents=True)
    (tmp_path / "code" / ".git").mkdir()
    (tmp_path / "code" / "A.java").write_text("class A { int f(int x) { return x; } }")
    (tmp_path / "code" / "inner" / "B.java").write_text("class B { int g(int x) { return x; } }")
    (tmp_path / "code" / ".git" / "C.java").write_text("hidden hidden hidden hidden")
    (tmp_path / "code" / "D.java").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "code" / "E.java")
    shared = tmp_path / "shared.json"
    done = run("frequencies", "--ngrams", "5", "--language", "java", tmp_path / "code", "-o", shared)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(shared.read_text())["shared_ngrams"]["java"] == [
        [["int"], 4], [["x"], 4], [["{"], 4], [["}"], 4], [["("], 2],
    ]  # fmt: skip
    done = run("score", "--metrics", f"crystalbleu={shared}", "--jsonl", fixes, "-f", "json")
    values = [row[f"crystalbleu={shared}"] for row in json.loads(done.stdout)["rows"]]
    assert values[0] == 1 > values[1] > values[2] == 0


@pytest.mark.parametrize(
    ("row", "arguments", "message"),
    [
        ({"reference": "a", "candidate": "b"}, [], 'line 1: expected a text under "language"'),
        (
            {"reference": "a", "candidate": "b"},
            ["--language", "java"],
            'line 1: expected a text under "source"',
        ),
        (
            {"reference": "a", "source": "b", "language": "java"},
            [],
            'line 1: expected a text under "candidate"',
        ),
        (
            {"reference": "a", "source": "b", "candidate": "c", "language": "cobol"},
            [],
            "line 1: language 'cobol': expected one of cpp, go, java, javascript, php, python, ruby, typ",
        ),
    ],
)
def test_incomplete_items_are_errors(tmp_path, row, arguments, message):
    (tmp_path / "items.jsonl").write_text(json.dumps(row) + "\n")
    done = run("score", "--metrics", "lemod", "--jsonl", tmp_path / "items.jsonl", *arguments)
    assert done.returncode == 2
    assert f"items.jsonl, {message}" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["score", "a", "b", "--metrics", "lemod"], "metrics for code need --jsonl FILE"),
        (["score", "a", "b", "--metrics", "jaccard", "--language", "java"], "--language goes with metrics"),
        (
            ["score", "--jsonl", "no", "--metrics", "lemod", "--language", "cobol"],
            "language 'cobol': expected one of cpp, go, java",
        ),
        (["frequencies", ".", "--ngrams", "3", "-o", "x.json"], "--ngrams K and --language NAME go together"),
        (
            ["frequencies", ".", "--ngrams", "3", "--language", "java", "--model", "x", "-o", "x.json"],
            "--model goes with references, not with --ngrams",
        ),
        (["frequencies", ".", "--ngrams", "0", "--language", "go", "-o", "x.json"], "--ngrams 0: expected"),
        (["frequencies", ".", "--ngrams", "3", "--language", "go", "-o", "x.json"], ".: no files of go"),
        (["frequencies", ".", "--ngrams", "3", "--language", "x", "-o", "x.json"], "language 'x': expected"),
        (["frequencies", "no.go", "--ngrams", "3", "--language", "go", "-o", "x.json"], "no.go"),
    ],
)  # fmt: skip
def test_wrong_options_are_errors(tmp_path, arguments, message):
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())
