import io
import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.stats import spearmanr

from simllm import InputError
from simllm.cli.main import main
from simllm.evaluation import model_variants, ratings
from simllm.evaluation.correlation import clean_ratings
from simllm.evaluation.metric_study import report
from simllm.evaluation.metric_study.study import run_study
from simllm.io.packages import versions
from simllm.metrics.text.words import jaccard
from simllm.stats import correlation
from tests.browser import check_page, needs_browser

pytestmark = pytest.mark.slow

STUDY = ["evaluate", "study", "--ratings"]


def write_ratings(file, comments, raters):
    """Write rated pairs; a candidate with a lower rating has fewer of the words of its reference."""
    random = np.random.default_rng(0)
    rows = []
    for i, text in enumerate(comments):
        words, kept = text.split(), i % 4 + 1
        candidate = " ".join(word for word in words if random.random() < kept / 4)
        ratings = [min(4, max(1, kept + int(random.integers(-1, 2)))) for _ in range(raters)]
        languages, systems = ("java", "go"), ("a & b", "<c>")
        row = {
            "language": languages[i % 2],
            "system": systems[i // 2 % 2],
            "metrics": {"kept": kept},
        }
        rows.append({"reference": text, "candidate": candidate, "ratings": ratings, **row})
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run the command in `tmp_path`; return its exit status, standard output and standard error."""

    def run_(*arguments):
        monkeypatch.setattr(sys, "argv", ["simllm", *map(str, arguments)])
        status = main(sys.argv[1:])
        return status, *capsys.readouterr()

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return run_


@pytest.fixture(scope="module")
def written(tmp_path_factory, comments, model_folder):
    """Return the folder of a report on two rated sets, and the standard output and error of its command."""
    folder = tmp_path_factory.mktemp("study")
    short = sorted({text for text in comments if 4 <= len(text.split()) <= 12})
    write_ratings(folder / "three_raters.jsonl", short[:90], 3)
    write_ratings(folder / "one_rater.jsonl", short[90:170], 1)
    for updates in (10, 20):
        shutil.copytree(model_folder, folder / "checkpoints" / f"update-{updates}")
    arguments = [*STUDY, "three_raters.jsonl", "one_rater.jsonl", "--model", str(model_folder),
                 "--metrics", "simllm,bleu,jaccard,rouge-l,column=kept,column=none,sentence-bert",
                 "--out", "report", "--checkpoints", "checkpoints"]  # fmt: skip
    printed, warned = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed), redirect_stderr(warned):
        patch.chdir(folder)
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.setattr(sys, "argv", ["simllm", *arguments])
        patch.setattr(warnings, "showwarning", warnings.showwarning)  # the command replaces it
        assert main(arguments) == 0, warned.getvalue()
    return folder / "report", printed.getvalue(), warned.getvalue()


def test_columns_with_other_names(run, tmp_path):
    """`--columns` reads the same study from a table; its numbers are those of the default names."""
    rows = [(f"adds {i}", f"adds {i}{' x' * (i % 5)}", i % 4, i % 3) for i in range(12)]
    lines = [",".join(map(str, row)) for row in rows]
    (tmp_path / "other.csv").write_text("\n".join(["human,model,ann,bo", *lines]) + "\n")
    named = [dict(zip(("reference", "candidate"), row[:2], strict=True), ratings=row[2:]) for row in rows]
    (tmp_path / "named.jsonl").write_text("".join(json.dumps(row) + "\n" for row in named))
    more = ("--metrics", "jaccard", "--questions", "rq1")
    columns = ("--columns", "human,model,ann,bo")
    status, _, told = run(*STUDY, "other.csv", *columns, *more, "--out", "a")
    assert status == 0, told
    assert run(*STUDY, "named.jsonl", *more, "--out", "b")[0] == 0
    a, b = (json.loads((tmp_path / name / "study.json").read_text())["sets"][0] for name in "ab")
    assert (a["name"], b["name"]) == ("other", "named")
    assert a["results"] == b["results"]
    assert a["agreement"] == b["agreement"] is not None
    status, _, told = run(*STUDY, "other.csv", "--columns", "human,model", *more, "--out", "c")
    assert status == 2
    assert "--columns human,model: expected the columns of reference, candidate and one or more" in told
    assert not (tmp_path / "c").exists()


def test_numbers_of_the_report(written):
    folder = written[0]
    found = json.loads((folder / "study.json").read_text())
    three, one = found["sets"]
    assert [three["pairs"], one["pairs"]] == [90, 80]
    rho = {row["metric"]: row["spearman"] for row in three["results"]}
    assert rho.keys() == {"simllm", "bleu", "jaccard", "rouge-l", "column=kept"}
    assert rho["column=kept"] > rho["jaccard"] > 0.5
    for set_ in found["sets"]:  # the best metric comes first, and all tables have this order
        ordered = [row["spearman"] for row in set_["results"]]
        assert ordered == sorted(ordered, reverse=True)
        assert all(row["low"] < row["spearman"] < row["high"] for row in set_["results"])
    rated = clean_ratings(ratings.load(folder.parent / "three_raters.jsonl"))
    two = [jaccard(rated.candidates, rated.references), rated.columns["kept"]]
    i, j = ([row["metric"] for row in three["results"]].index(m) for m in ("jaccard", "column=kept"))
    assert three["between"][i][j] == pytest.approx(spearmanr(*two).statistic)
    assert three["permutation"][i][j] == correlation.permutation_p_values(two, rated.values)[0, 1] < 0.9
    assert three["agreement"]["raters"] == 3
    assert one["agreement"] is None
    assert len(three["variants"]) == 9
    updates, untrained = three["checkpoints"][0]
    assert (updates, untrained["metric"]) == (0, "untrained")
    assert [at for at, _ in three["checkpoints"]] == [0, 10, 20]
    assert {group["by"] for group in three["groups"]} == {"language", "system", "length"}
    assert np.diag(three["between"]) == pytest.approx(1)
    assert found["missing"] == {"sentence-bert": "name it as sentence-bert=MODEL"}
    assert "no complete column none; it has kept" in three["missing"]["column=none"]
    assert found["signatures"]["simllm"].startswith("model:")
    assert found["command"].startswith("simllm evaluate study --ratings three_raters.jsonl")


def test_command_in_a_new_process(tmp_path, comments):
    write_ratings(tmp_path / "rated.jsonl", comments[:30], 3)
    command = [
        sys.executable,
        "-m",
        "simllm",
        *STUDY,
        "rated.jsonl",
        "--metrics",
        "jaccard",
        "--questions",
        "rq1",
    ]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    runs = [
        subprocess.run(
            [*command, "--out", out],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        for out in ("report", ".")
    ]
    assert [(done.returncode, done.stdout.count("\n"), done.stderr.count("\n")) for done in runs] == [
        (0, 2, 0), (2, 0, 1),
    ]  # fmt: skip
    assert "agrees with people" in (tmp_path / "report" / "report.html").read_text()


def test_the_table_on_standard_output(written):
    _, printed, warned = written
    header, *rows = (line.split("\t") for line in printed.splitlines())
    assert header == ["ratings", "metric", "rank", "spearman", "low", "high", "p_value"]
    assert len(rows) == 10
    assert "sentence-bert is left out: name it as sentence-bert=MODEL" in warned


def test_page_is_self_contained_and_escapes_names(written):
    page = (written[0] / "report.html").read_text()
    assert not re.findall(r'(?:src|href)="(?!#|data:)', page)
    shown = re.findall(r"<svg.*?</svg>", page, re.S)
    assert len(shown) == 2 + 2 + 1 + 2  # RQ1 has two tables per set, RQ3 and RQ5 have one
    for figure in shown:
        ElementTree.fromstring(figure)
    assert "&lt;c&gt;" in page
    assert "<c>" not in page


def test_the_latex_tables(written):
    text = (written[0] / "tables.tex").read_text()
    assert text.count("\\begin{tabular}") == text.count("\\end{tabular}") == 6
    labels = re.findall(r"\\label\{(.*?)\}", text)
    assert labels == [
        "tab:agreement", "tab:variants", "tab:between-three_raters", "tab:between-one_rater",
        "tab:parts-three_raters", "tab:parts-one_rater",
    ]  # fmt: skip
    assert r"a \& b" in text
    assert r"three\_raters" in text
    for table in re.findall(r"\\begin\{tabular\}\{(l r*|lr*)\}(.*?)\\end", text, re.S):
        columns = len(table[0])
        for line in table[1].splitlines():
            if line.endswith(r"\\"):
                assert len(re.findall(r"(?<!\\)&", line)) == columns - 1


@needs_browser
def test_page_in_a_browser(written, tmp_path):
    check_page(written[0] / "report.html", tmp_path, height=5000)


def test_sets_with_equal_names_are_labelled_by_path(tmp_path, comments):
    for name in ("mine/rated.jsonl", "yours/rated.jsonl", "other.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_ratings(tmp_path / name, comments[:12], 1)
    files = [tmp_path / name for name in ("mine/rated.jsonl", "other.jsonl", "yours/rated.jsonl")]
    found = run_study(files, ["jaccard"], questions=())
    assert [one.name for one in found.sets] == [str(files[0]), "other", str(files[2])]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--questions", "rq6"], "question 'rq6': expected some of rq1, rq2"),
        (["--out", "rated.jsonl"], "{folder}/rated.jsonl: is not a folder"),
        (["--out", "."], "{folder}: holds files that simllm did not write"),
        (["--out", "loop"], "{folder}/loop: is a loop of links"),
        (["--out", "loop/report"], "{folder}/loop: is a loop of links"),
        (["--ratings", "rated.jsonl", "./rated.jsonl"], "rated.jsonl: is named twice"),
        (["--ratings", "loop"], "loop: cannot be read"),
        (["--ratings", "loop", "rated.jsonl"], "loop: cannot be read"),
        (["--questions", "rq1,rq4"], "rq4 needs --checkpoints DIR"),
        (["--checkpoints", "."], ".: no model folders in it; expected one for each checkpoint"),
        (["--checkpoints", "empty"], "empty: no model folders in it; expected one for each checkpoint"),
    ],
)
def test_bad_input(run, tmp_path, comments, arguments, message):
    write_ratings(tmp_path / "rated.jsonl", comments[:8], 1)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "empty").mkdir()
    status, _, said = run(*STUDY, "rated.jsonl", "--out", "out", "--metrics", "jaccard", *arguments)
    message = message.format(folder=tmp_path)
    assert (status, said) == (2, f"simllm: error: {message}" + said.partition(message)[2])
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_ratings_inside_the_report_are_refused(quick, tmp_path):
    assert quick()[0] == 0
    moved = (tmp_path / "rated.jsonl").rename(tmp_path / "report" / "rated.jsonl")
    (tmp_path / "rated.jsonl").symlink_to(moved)
    status, _, said = quick()
    assert status == 2
    assert said.endswith("report: is the source rated.jsonl, inside it or above it; name another folder\n")
    assert moved.stat().st_size


@pytest.fixture
def quick(run, tmp_path, comments, monkeypatch):
    """Return a function that runs a small study with `--out report`."""
    write_ratings(tmp_path / "rated.jsonl", comments[:30], 1)
    return lambda *options: run(
        *STUDY,
        "rated.jsonl",
        "--out",
        "report",
        "--metrics",
        "jaccard,column=kept",
        "--questions",
        "rq1",
        *options,
    )


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("name", ["report.html", "thesis.tex"])
def test_foreign_output_folder_is_refused_before_scoring(quick, tmp_path, name, monkeypatch):
    monkeypatch.setattr("simllm.evaluation.metric_study.study.run_study", pytest.fail)
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / name).write_text("mine")
    status, printed, said = quick()
    assert (status, printed) == (2, "")
    assert said == (
        f"simllm: error: {tmp_path}/report: holds files that simllm did not write (no .simllm there); "
        "name a new or empty folder\n"
    )
    assert contents(tmp_path / "report") == {name: b"mine"}


def test_earlier_report_is_replaced_and_user_files_are_kept(quick, tmp_path):
    assert quick()[0] == 0
    first = contents(tmp_path / "report")
    (tmp_path / "report" / "notes.txt").write_text("mine")
    assert quick("-f", "json")[0] == 0
    second = contents(tmp_path / "report")
    assert second.pop("notes.txt") == b"mine"
    assert second.keys() == first.keys() == {".simllm", "report.html", "study.json", "tables.tex"}
    assert second["study.json"] != first["study.json"]  # the command line differs


def test_user_file_at_an_output_path_is_refused_before_scoring(quick, tmp_path, monkeypatch):
    assert quick()[0] == 0
    marker = tmp_path / "report" / ".simllm"
    marker.write_text(marker.read_text().replace('"report.html",', ""))
    monkeypatch.setattr("simllm.evaluation.metric_study.study.run_study", pytest.fail)
    status, _, said = quick()
    assert (status, said) == (
        2,
        "simllm: error: report/report.html: was not written by simllm; move it away\n",
    )


ODD = ["$\\frac$", "100 % _x_ & co", "<script>alert(1)</script>", "back\\slash", "two\n\nlines", "", " ",
       "日本語 עברית", "\ud800", "\x00\x1b[31m", "x" * 500, "<svg><g id='a'>"]  # fmt: skip


def test_unusual_names_of_systems_metrics_and_files(run, tmp_path, comments):
    file = tmp_path / "a_$\\x$ & <b>\n%\udcff.jsonl"
    rows = []
    for i, text in enumerate(comments[: 20 * len(ODD)]):
        row = {
            "reference": text + "\ud800",
            "candidate": " ".join(text.split()[: i % 7 + 1]),
            "rating": i % 5,
        }
        labels = dict.fromkeys(("system", "language"), ODD[i % len(ODD)])
        rows.append({**row, **labels, "metrics": {"$\\frac$ <b>\n&": i % 3}})
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    metrics = "jaccard,column=$\\frac$ <b>\n&"
    status, _, said = run(*STUDY, file.name, "--out", "report", "--metrics", metrics, "--questions", "rq5")
    assert (status, said) == (0, "")
    page = (tmp_path / "report" / "report.html").read_text()
    for figure in re.findall(r"<svg.*?</svg>", page, re.S):
        ElementTree.fromstring(figure)
    assert "<script" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;" in page
    assert "$\\frac$" in page
    assert "日本語" in page
    assert "(blank)" in page
    assert "x" * 41 not in page
    text = (tmp_path / "report" / "tables.tex").read_text()
    assert "\n\n" not in text.partition("\\begin{table}")[2].replace("\\end{table}\n\n", "")
    comment, *lines = text.splitlines()
    assert comment.startswith("% simllm evaluate study")
    assert all(line.startswith(("%", "\\", "  ")) or not line for line in lines)
    json.loads((tmp_path / "report" / "study.json").read_text())


def test_a_metric_that_is_constant_or_reversed_and_ties_everywhere(run, tmp_path):
    """A constant metric is left out, and metrics that correlate by 1 and -1 get p-values but no interval.

    Scores and ratings have at most two values, so they are often constant in resamples and after swaps.
    """
    rows = [
        {
            "reference": "a b",
            "candidate": "a" if i % 3 else "a b",
            "ratings": [i % 2, i % 2],
            "metrics": metrics,
        }
        for i in range(12)
        for metrics in [{"one": 1, "same": i % 2, "reverse": -(i % 2)}]
    ]
    (tmp_path / "rated.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    metrics = "jaccard,column=one,column=same,column=reverse"
    status, printed, said = run(
        *STUDY, "rated.jsonl", "--out", "report", "--metrics", metrics, "--questions", "rq5", "-f", "json"
    )
    assert status == 0
    assert said == "" or "column=one" in said
    found = json.loads((tmp_path / "report" / "study.json").read_text(), parse_constant=pytest.fail)
    assert found["sets"][0]["missing"]["column=one"] == "it gives all pairs of rated the same score"
    results = {row["metric"]: row for row in found["sets"][0]["results"]}
    assert results["column=same"]["spearman"] == -results["column=reverse"]["spearman"] == 1
    assert results["column=same"]["low"] is None
    assert results["column=same"]["p_value"] == pytest.approx(2 / 924, abs=0.002)  # 12 choose 6
    assert "Significantly below zero: column=reverse." in json.loads(printed)["summary of rated"]


@pytest.mark.parametrize("pairs", [3, 4])
def test_few_pairs_by_several_raters_get_a_report(run, tmp_path, pairs):
    texts = ["a b c", "a b d", "a e f", "g h i"]
    rows = [
        {"reference": "a b c", "candidate": text, "ratings": [4 - n, 4 - n]} for n, text in enumerate(texts)
    ]
    (tmp_path / "rated.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:pairs]))
    status, _, said = run(*STUDY, "rated.jsonl", "--out", "report", "--metrics", "jaccard,chrf")
    assert status == 0
    assert f"{pairs} rated pairs: p is at least" in said
    assert "<td>n/a</td>" in (tmp_path / "report" / "report.html").read_text()


def test_metrics_for_which_lower_is_better_are_negated(tmp_path):
    rows = [
        {
            "language": "python",
            "source": "x = 1\n",
            "reference": "x = 2\n",
            "candidate": "x = 2\n" + "y = 3\n" * i,
            "rating": 9 - i,
        }
        for i in range(8)
    ]
    (tmp_path / "rated.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    study = run_study([tmp_path / "rated.jsonl"], ["rps"], questions=[])
    (found,) = study.sets
    assert found.results[0].spearman == 1
    assert found.results[0].quantiles[-1] < 0
    report.write(study, tmp_path / "report", "simllm evaluate study")
    assert json.loads((tmp_path / "report" / "study.json").read_text())["negated"] == ["rps"]
    assert "Lower scores of rps are better; they are negated" in (tmp_path / "report/report.html").read_text()


def test_versions_of_missing_libraries_are_left_out():
    assert versions(("numpy", "no-such-library")).keys() == {"simllm", "python", "system", "numpy"}


@pytest.mark.parametrize("updates", [None, "many", True, [3], -1])
def test_checkpoint_without_updates_is_an_error(tmp_path, model_folder, updates):
    shutil.copytree(model_folder, tmp_path / "best")
    if updates is not None:
        file = tmp_path / "best" / "simllm.json"
        info = json.loads(file.read_text())
        file.write_text(json.dumps({**info, "provenance": {**info["provenance"], "updates": updates}}))
    with pytest.raises(InputError, match="best: neither its provenance nor its name has a number of updates"):
        model_variants.load_checkpoints(tmp_path)
