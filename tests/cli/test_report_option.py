"""`simllm score --report` and `simllm compare --report`."""

import json

import pytest

from simllm.cli import report_option
from tests.analysis.score_report.reports import data_of
from tests.command import run

PAIRS = [
    {
        "key": "a",
        "candidate": "opens the log file",
        "reference": "closes the log file",
        "language": "c",
        "stars": 5,
    },
    {
        "key": "b",
        "candidate": "adds two lists",
        "reference": "combines 2 arrays",
        "language": "go",
        "stars": 7,
    },
    {"key": "c", "candidate": "", "reference": "returns the name", "language": "go", "stars": 900},
]


@pytest.fixture
def folder(tmp_path):
    lines = "".join(json.dumps(pair) + "\n" for pair in PAIRS)
    (tmp_path / "pairs.jsonl").write_text(lines)
    for name, field in (("r.txt", "reference"), ("a.txt", "candidate")):
        (tmp_path / name).write_text("".join(pair[field] + "\n" for pair in PAIRS))
    (tmp_path / "b.txt").write_text("closes a file\nreads\nreturns a name\n")
    return tmp_path


def test_score_writes_the_same_table_and_a_report(folder):
    plain = run("score", "--jsonl", "pairs.jsonl", "--id-field", "key", "-f", "json", cwd=folder)
    options = ("--report", "out.html", "--group-by", "language,stars")
    done = run("score", "--jsonl", "pairs.jsonl", "--id-field", "key", "-f", "json", *options, cwd=folder)
    assert (done.returncode, done.stdout) == (0, plain.stdout)
    assert done.stderr.endswith("simllm: report out.html\n")
    page = (folder / "out.html").read_text()
    data = data_of(page)
    table = json.loads(plain.stdout)
    scores = [row["score"] for row in table["rows"]]
    assert [pair["scores"][0] for pair in data["pairs"]] == pytest.approx(scores, abs=5e-5)
    assert [pair["id"] for pair in data["pairs"]] == ["a", "b", "c"]
    assert [pair["changed"] for pair in data["pairs"]] == [[True], [False], [False]]
    assert data["fields"] == ["language", "stars", "words in the reference"]
    assert data["pairs"][2]["groups"] == ["go", "900", "3 to 4"]
    assert data["pairs"][0]["changedBy"] == [["opens", "closes"]]
    assert "In 1 pair (33%), the texts are similar, but the meaning may have changed." in page
    assert "In 1 pair (33%), a text is empty after cleaning." in page


def test_score_with_a_file_resumes_and_writes_a_report(folder, model_folder):
    words = ("score", "-c", "a.txt", "-r", "r.txt", "-o", "s.tsv", "--resume", "--report", "out.html", "-q")
    done = run(*words, "--model", model_folder, cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(data_of((folder / "out.html").read_text())["pairs"]) == 3


def test_score_from_standard_input_writes_a_table_and_a_report(folder, model_folder):
    words = ("score", "--jsonl", "-", "-o", "s.tsv", "--report", "out.html", "-q")
    done = run(*words, "--model", model_folder, cwd=folder, input=(folder / "pairs.jsonl").read_text())
    assert (done.returncode, done.stderr) == (0, "")
    assert len((folder / "s.tsv").read_text().splitlines()) == 4
    assert len(data_of((folder / "out.html").read_text())["pairs"]) == 3


def test_metrics_stand_beside_each_other(folder):
    words = ("score", "-c", "a.txt", "-r", "r.txt", "--metrics", "jaccard,simllm", "--report", "out.html")
    assert run(*words, cwd=folder).returncode == 0
    page = (folder / "out.html").read_text()
    data = data_of(page)
    assert data["columns"] == ["jaccard", "simllm"]
    assert data["same"] == ["simllm"]
    assert page.count("<svg") == 2
    assert "jaccard and simllm: Spearman" in page
    assert data["pairs"][0]["changedBy"] == [["opens", "closes"]]
    assert "beside that of unrelated texts" not in page  # the scale is that of another metric


def test_compare_shows_each_pair_by_all_systems(folder):
    words = ("compare", "-r", "r.txt", "r.txt", "-c", "a.txt", "b.txt")
    plain = run(*words, cwd=folder)
    done = run(*words, "--report", "out.html", cwd=folder)
    assert (done.returncode, done.stdout) == (0, plain.stdout)
    page = (folder / "out.html").read_text()
    first = data_of(page)["pairs"][0]
    assert data_of(page)["systems"] == ["a", "b"]
    assert first["candidates"] == ["opens the log file", "closes a file"]
    assert first["reference"] == "closes the log file / closes the log file"
    assert "b has the highest mean score" in page
    assert "changedBy" not in first  # two references were joined
    assert "people would rate" not in page  # two references have no scale


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--report", "pairs.jsonl"), "pairs.jsonl: would overwrite what is read"),
        (("--report", "-"), "--report -: expected a file; the table goes to standard output"),
        (("--report", "out.html", "-o", "out.html"), "--report out.html: -o names the same file"),
        (("--report", "a.txt"), "a.txt: exists already; --overwrite replaces it"),
        (("--report", "no/such/out.html"), "no/such/out.html: cannot be written (no such folder)"),
        (("--group-by", "language"), "--group-by goes with --report FILE"),
        (
            ("--report", "out.html", "--group-by", "lang"),
            'pairs.jsonl, line 1: expected a value under "lang"',
        ),
    ],
)
def test_wrong_options_are_refused_in_one_line(folder, words, message):
    before = sorted(folder.iterdir())
    done = run("score", "--jsonl", "pairs.jsonl", *words, cwd=folder)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(folder.iterdir()) == before


def test_groups_need_json_lines_that_can_be_read_again(folder, model_folder):
    words = ("score", "--jsonl", "-", "--report", "out.html", "--group-by", "language")
    done = run(*words, "--model", model_folder, cwd=folder, input=(folder / "pairs.jsonl").read_text())
    assert done.returncode == 2
    assert "not with standard input or a pipe" in done.stderr
    pairs = (folder / "pairs.jsonl").read_text()
    assert run(*words[:-2], "--model", model_folder, cwd=folder, input=pairs).returncode == 0


def test_groups_take_numbers_of_any_size(folder, model_folder):
    pairs = [{**PAIRS[0], "size": 10**400 + i} for i in range(13)]
    (folder / "large.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    words = ("score", "--jsonl", "large.jsonl", "--report", "out.html", "--group-by", "size")
    done = run(*words, "--model", model_folder, cwd=folder)
    assert done.returncode == 0
    assert data_of((folder / "out.html").read_text())["pairs"][0]["groups"][0].startswith(f"{10**400} to ")


def test_a_file_that_another_program_wrote_meanwhile_is_kept(folder, monkeypatch, model_folder):
    def check_and_wait(*_):
        (folder / "out.html").write_text("precious")

    monkeypatch.setattr(report_option, "check", check_and_wait)
    words = ("score", "a", "b", "-q", "--report", "out.html", "--model", model_folder)
    done = run(*words, cwd=folder)
    assert (done.returncode, done.stderr) == (
        2, "simllm: error: out.html: exists already; --overwrite replaces it\n",
    )  # fmt: skip
    assert (folder / "out.html").read_text() == "precious"


def test_compare_with_one_reference_names_changing_words_and_the_scale(folder):
    words = ("compare", "-r", "r.txt", "-c", "a.txt", "b.txt", "--report", "out.html", "-q")
    assert run(*words, cwd=folder).returncode == 0
    page = (folder / "out.html").read_text()
    assert data_of(page)["pairs"][0]["changedBy"] == [["opens", "closes"], None]
    assert "<li>a: the mean is above " in page
    assert "<li>b: the mean is above " in page


def test_one_pair_is_counted_in_the_singular(folder, model_folder):
    words = ("score", "--jsonl", "-", "-f", "tsv")
    done = run(*words, "--model", model_folder, cwd=folder, input=json.dumps(PAIRS[0]))
    assert done.stderr.startswith("simllm: 1 pair, mean raw score")
