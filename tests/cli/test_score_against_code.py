"""`simllm score --against` and `simllm explain --code`: summaries against the code that they describe."""

import json

import pytest

from simllm import SimLLM
from simllm.metrics.interface import Example
from tests.analysis.score_report.reports import data_of
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


def test_metrics_read_the_language_of_each_line(tmp_path):
    """A docstring is no code, so that a text that repeats a wrong one fits no better."""
    code = 'def add(a, b):\n    """Deletes the file."""\n    return a + b\n'
    texts = ["deletes the file", "adds two numbers"]
    rows = [{"candidate": text, "reference": "sums", "source": code, "language": "python"} for text in texts]
    file = tmp_path / "items.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run("score", "--jsonl", file, "--metrics", "simllm-code", "-f", "json")
    expected = SimLLM().score([Example(text, None, code, "python") for text in texts], against="code")
    found = [row["simllm-code"] for row in json.loads(done.stdout)["rows"]]
    assert found == pytest.approx(expected.values.tolist())
    for name, text in zip("ab", texts, strict=True):
        (tmp_path / f"{name}.txt").write_text(text + "\n")
    (tmp_path / "refs.txt").write_text("sums\n")
    (tmp_path / "code.jsonl").write_text(json.dumps(rows[0]) + "\n")
    names = ["-c", tmp_path / "a.txt", tmp_path / "b.txt", "-r", tmp_path / "refs.txt"]
    options = ["--metrics", "simllm-code", "--sources", tmp_path / "code.jsonl", "-f", "json"]
    systems = json.loads(run("compare", *names, *options).stdout)["systems"]
    assert [system["mean"] for system in systems] == pytest.approx(expected.values.tolist())


def test_an_unknown_language_is_told(tmp_path):
    file = tmp_path / "items.jsonl"
    rows = [ITEMS[0] | {"language": name} for name in ("Python", "pyton", "rust", "", "java")]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run("score", "--jsonl", file, "--against", "code", "-f", "json")
    known = "cpp, go, java, javascript, php, python, ruby, typescript"
    warning = f"2 of 5 pairs have an unknown language (pyton, rust); known are {known}"
    assert json.loads(done.stdout)["warnings"] == [warning]
    assert f"warning: {warning}\n" in done.stderr


def test_an_empty_cell_has_the_language_of_the_option(tmp_path):
    file = tmp_path / "items.csv"
    file.write_text("candidate,code,language\nadds,a + b,\nadds,a + b,java\n")
    done = run("score", "--table", file, "--against", "code", "--language", "pyton", "-f", "json")
    assert "1 of 2 pairs have an unknown language (pyton)" in json.loads(done.stdout)["warnings"][0]


@pytest.mark.parametrize("against", ["code", "both"])
def test_report_shows_the_code_and_only_real_references(items, tmp_path, against):
    pytest.importorskip("jinja2")
    file = tmp_path / "page.html"
    done = run("score", "--jsonl", items, "--against", against, "--report", file, "-f", "json")
    assert done.returncode == 0
    page, rows = file.read_text(), json.loads(done.stdout)["rows"]
    data = data_of(page)
    assert [pair["code"] for pair in data["pairs"]] == [item["code"] for item in ITEMS]
    assert data["hasReferences"] == (against == "both")
    assert data["columns"] == ["score", "fits"]
    assert [pair["scores"][1] for pair in data["pairs"]] == [round(row["fits"], 4) for row in rows]
    assert ("the reference is boilerplate" in page.split("<script")[0]) == (against == "both")
    assert ("words in the reference" in page) == (against == "both")
    # Without references, words are compared with those of the code.
    expected = "returns the sum" if against == "both" else "def add a b return a + b"
    assert data["pairs"][0]["reference"] == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["a", "b", "--against", "code"], '--against code needs --jsonl FILE, with "code"'),
        (["--jsonl", "FILE", "--against", "code", "--scale", "percentile"], "--scale does not go with"),
        (["--jsonl", "FILE", "--against", "code", "--device", "abacus"], "abacus"),
        (["--jsonl", "FILE", "--against", "code", "--metrics", "bleu"], "--metrics does not go with"),
        (
            ["--jsonl", "FILE", "--against", "code", "--code-field", "body"],
            'items.jsonl, line 1: expected a text under "body"',
        ),
        (["--jsonl", "FILE", "--code-field", "body"], "--code-field goes with --against code or both"),
    ],
)
def test_wrong_options(options, message, items):
    done = run("score", *[items if word == "FILE" else word for word in options])
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


CODE = """def merge_accounts(first, second, limit=3):
    \"\"\"Delete the log files.\"\"\"
    balance = first.balance + second.balance  # printer
    if balance > limit:
        notify_owner(first.owner)
    return balance
"""


@pytest.fixture
def code(tmp_path):
    (tmp_path / "accounts.py").write_text(CODE)
    return tmp_path / "accounts.py"


def test_statements_with_and_without_support(code):
    summary = "merges two accounts, notifies the owner, and sends the report to the printer"
    done = run("explain", summary, "--code", code, "-f", "json")
    explained = json.loads(done.stdout)
    first, second, third = explained["statements"]
    assert [each["supported"] for each in explained["statements"]] == [True, True, False]
    assert "merge_accounts" in first["identifiers"]
    assert {"owner", "notify_owner"} <= set(second["identifiers"])
    assert third["identifiers"] == []
    assert explained["score"] == pytest.approx(SimLLM().score(
        [Example(summary, None, CODE, "python")]
    ).values[0])  # fmt: skip
    text = run("explain", summary, "--code", code).stdout
    assert "without support in the code" in text


def test_a_name_in_the_code_supports_what_it_says_and_not_its_opposite(code):
    summary = "merges two accounts, notifies the owner, does not notify the owner"
    explained = json.loads(run("explain", summary, "--code", code, "-f", "json").stdout)
    assert [each["supported"] for each in explained["statements"]] == [True, True, False]


def test_a_model_without_a_reader_of_code_marks_no_statement(code, model_folder):
    done = run("explain", "opens the printer", "--code", code, "--model", model_folder, "-f", "json")
    assert done.returncode == 0, done.stderr
    explained = json.loads(done.stdout)
    assert explained["fits"] is None
    assert explained["statements"][0]["supported"] is None
    assert "statements without support are not marked" in explained["warnings"][0]
    assert "no model that reads code belongs to this model" in done.stderr
    text = run("explain", "opens the printer", "--code", code, "--model", model_folder).stdout
    assert "without support" not in text


def test_explaining_tells_of_texts_without_words_and_unknown_languages(code, tmp_path):
    empty = tmp_path / "empty.py"
    empty.write_text("# adds\n")
    for summary, file, name in (("adds", empty, "code"), ("日本", code, "summary")):
        done = run("explain", summary, "--code", file)
        expected = f"simllm: error: explain: the {name} is empty after cleaning; expected words\n"
        assert (done.returncode, done.stderr, done.stdout) == (2, expected, "")
    done = run("explain", "adds", "--code", code, "--language", "pyton", "-f", "json")
    assert "1 of 1 pairs have an unknown language (pyton)" in json.loads(done.stdout)["warnings"][0]


def test_words_of_comments_support_nothing(code):
    explained = json.loads(run("explain", "Deletes the printer.", "--code", code, "-f", "json").stdout)
    assert "printer" not in explained["statements"][0]["identifiers"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["a"], "expected a candidate, and either a reference or --code FILE"),
        (["a", "b", "--code", "FILE"], "expected a candidate, and either"),
        (["a", "b", "--language", "java"], "--language goes with --code FILE"),
        (["a", "--code", "FILE", "-f", "html"], "--format html does not go with --code"),
        (["a", "--code", "missing.py"], "missing.py: cannot be read"),
    ],
)
def test_wrong_options_of_explain(options, message, code):
    done = run("explain", *[code if word == "FILE" else word for word in options])
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
