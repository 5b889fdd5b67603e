"""`simllm score --against`: tables of scores of summaries against the code that they describe."""

import json

import pytest

from simllm import SimLLM
from simllm.metrics.interface import Example
from tests.command import run

ITEMS = [
    {"candidate": "adds two numbers", "code": "def add(a, b): return a + b", "language": "python", "key": 7},
    {"candidate": "opens a file", "code": "int max(int a, int b) { return a > b ? a : b; }", "key": "b"},
]


@pytest.fixture
def items(tmp_path):
    file = tmp_path / "items.jsonl"
    rows = [item | {"reference": "returns the sum"} for item in ITEMS]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


@pytest.mark.parametrize("against", ["code", "both"])
def test_scores_are_those_of_the_class(items, against):
    done = run("score", "--jsonl", items, "--against", against, "--id-field", "key", "-f", "json")
    table = json.loads(done.stdout)
    languages = [item.get("language") for item in ITEMS]
    examples = [
        Example(item["candidate"], "returns the sum", item["code"], language)
        for item, language in zip(ITEMS, languages, strict=True)
    ]
    scores = SimLLM().score(examples, against=against)
    assert [row["score"] for row in table["rows"]] == pytest.approx(scores.values.tolist())
    assert [row["id"] for row in table["rows"]] == [7, "b"]
    assert table["signature"] == scores.signature
    assert f"against:{against}" in table["signature"]
    assert ("fits" in table["rows"][0]) == (scores.fits is not None)


def test_report_shows_the_code(items, tmp_path):
    pytest.importorskip("jinja2")
    done = run("score", "--jsonl", items, "--against", "code", "--report", tmp_path / "page.html")
    assert done.returncode == 0
    assert "def add(a, b): return a + b" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["a", "b", "--against", "code"], '--against code needs --jsonl FILE, with "code"'),
        (["--jsonl", "FILE", "--against", "code", "--scale", "percentile"], "--scale does not go with"),
        (["--jsonl", "FILE", "--against", "code", "--metrics", "bleu"], "--metrics does not go with"),
        (["--jsonl", "FILE", "--against", "code", "--code-field", "body"], "items.jsonl:1: expected a text"),
        (["--jsonl", "FILE", "--code-field", "body"], "--code-field goes with --against code or both"),
    ],
)
def test_wrong_options(options, message, items):
    done = run("score", *[items if word == "FILE" else word for word in options])
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
