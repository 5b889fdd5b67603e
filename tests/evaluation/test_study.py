import json
import math
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import matplotlib.image
import numpy as np
import pytest
from scipy.stats import spearmanr

from simllm import InputError
from simllm.evaluation import model_variants, ratings
from simllm.evaluation.conclusions import in_words
from simllm.evaluation.human_correlation import cleaned
from simllm.evaluation.ratings import Ratings
from simllm.evaluation.study import Result, study
from simllm.evaluation.study_groups import groups
from simllm.metrics.text import jaccard
from simllm.stats import significance
from simllm.stats.rater_agreement import Agreement, ceiling

STUDY = [sys.executable, "-m", "simllm", "evaluate", "study", "--ratings"]
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


def write_ratings(file, comments, raters):
    """Candidates that lose the more words, the lower they are rated."""
    random = np.random.default_rng(0)
    rows = []
    for number, text in enumerate(comments):
        words, kept = text.split(), number % 4 + 1
        candidate = " ".join(word for word in words if random.random() < kept / 4)
        ratings = [min(4, max(1, kept + int(random.integers(-1, 2)))) for _ in range(raters)]
        languages, systems = ("java", "go"), ("a & b", "<c>")
        row = {
            "language": languages[number % 2],
            "system": systems[number // 2 % 2],
            "metrics": {"kept": kept},
        }
        rows.append({"reference": text, "candidate": candidate, "ratings": ratings, **row})
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture(scope="module")
def report(tmp_path_factory, comments, model_folder):
    folder = tmp_path_factory.mktemp("study")
    short = sorted({text for text in comments if 4 <= len(text.split()) <= 12})
    write_ratings(folder / "three_raters.jsonl", short[:90], 3)
    write_ratings(folder / "one_rater.jsonl", short[90:170], 1)
    for updates in (10, 20):
        shutil.copytree(model_folder, folder / "checkpoints" / f"update-{updates}")
    done = subprocess.run(
        [*STUDY, "three_raters.jsonl", "one_rater.jsonl", "--model", model_folder, "--out", "report",
         "--metrics", "simllm,bleu,jaccard,rouge-l,column=kept,column=none,sentence-bert",
         "--checkpoints", "checkpoints"],
        cwd=folder, capture_output=True, text=True, timeout=600, check=False,
        env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "report", done


def test_the_numbers(report):
    folder, _ = report
    found = json.loads((folder / "study.json").read_text())
    three, one = found["sets"]
    assert [three["pairs"], one["pairs"]] == [90, 80]
    rho = {row["metric"]: row["spearman"] for row in three["results"]}
    assert rho.keys() == {"simllm", "bleu", "jaccard", "rouge-l", "column=kept"}
    assert rho["column=kept"] > rho["jaccard"] > 0.5
    for set_ in found["sets"]:  # the best comes first, and everything else goes by that order
        ordered = [row["spearman"] for row in set_["results"]]
        assert ordered == sorted(ordered, reverse=True)
        assert all(row["low"] < row["spearman"] < row["high"] for row in set_["results"])
    rated = cleaned(ratings.load(folder.parent / "three_raters.jsonl"))
    two = [jaccard.score(rated.candidates, rated.references), rated.columns["kept"]]
    i, j = ([row["metric"] for row in three["results"]].index(m) for m in ("jaccard", "column=kept"))
    assert three["between"][i][j] == pytest.approx(spearmanr(*two).statistic)
    assert three["permutation"][i][j] == significance.permutation(two, rated.values)[0, 1] < 0.9
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


def test_the_table_on_standard_output(report):
    _, done = report
    header, *rows = (line.split("\t") for line in done.stdout.splitlines())
    assert header == ["ratings", "metric", "rank", "spearman", "low", "high", "p_value"]
    assert len(rows) == 10
    assert "sentence-bert is left out: name it as sentence-bert=MODEL" in done.stderr


def test_the_page_stands_alone_and_escapes(report):
    page = (report[0] / "report.html").read_text()
    assert not re.findall(r'(?:src|href)="(?!#)', page)
    figures = re.findall(r"<svg.*?</svg>", page, re.S)
    assert len(figures) == 2 + 2 + 1 + 2  # RQ1 has two, RQ3 and RQ5 one a set
    for figure in figures:
        ElementTree.fromstring(figure)
    assert "&lt;c&gt;" in page
    assert "<c>" not in page


def test_the_latex_tables(report):
    text = (report[0] / "tables.tex").read_text()
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


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium to render the page")
def test_the_page_in_a_browser(report, tmp_path):
    shot = tmp_path / "page.png"
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile"]
    subprocess.run(
        [*command, "--window-size=1100,6000", f"--screenshot={shot}", (report[0] / "report.html").as_uri()],
        capture_output=True, timeout=300, check=True,
    )  # fmt: skip
    grey = matplotlib.image.imread(shot)[:, :, :3].mean(axis=2)
    assert grey.shape[1] == 1100
    printed = (grey < 0.9).any(axis=1)
    assert printed[:5000].mean() > 0.3  # lines of pixels that have anything on them
    assert (grey[:, :15] > 0.99).all()  # the margins are empty: nothing sticks out
    assert (grey[:, -15:] > 0.99).all()


def test_sets_of_one_name_are_told_apart_by_their_paths(tmp_path, comments):
    for name in ("mine/rated.jsonl", "yours/rated.jsonl", "other.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_ratings(tmp_path / name, comments[:12], 1)
    files = [tmp_path / name for name in ("mine/rated.jsonl", "other.jsonl", "yours/rated.jsonl")]
    found = study(files, ["jaccard"], questions=())
    assert [one.name for one in found.sets] == [str(files[0]), "other", str(files[2])]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--questions", "rq6"], "question 'rq6': expected some of rq1, rq2"),
        (["--out", "rated.jsonl"], "{folder}/rated.jsonl: is not a folder"),
        (["--ratings", "rated.jsonl", "./rated.jsonl"], "rated.jsonl: given twice"),
        (["--questions", "rq1,rq4"], "rq4 needs --checkpoints DIR"),
        (["--checkpoints", "."], ".: no model folders in it; expected one for each checkpoint"),
    ],
)
def test_bad_input(tmp_path, comments, arguments, message):
    write_ratings(tmp_path / "rated.jsonl", comments[:8], 1)
    command = [*STUDY, "rated.jsonl", "--out", "out", "--metrics", "jaccard", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2
    message = message.format(folder=tmp_path)
    assert done.stderr == f"simllm: error: {message}" + done.stderr.partition(message)[2]
    assert not (tmp_path / "out").exists()


def test_a_checkpoint_without_updates_is_named(tmp_path, model_folder):
    shutil.copytree(model_folder, tmp_path / "best")
    with pytest.raises(InputError, match="best: neither its provenance nor its name says"):
        model_variants.checkpoints(tmp_path)


def test_parts_by_language_and_by_length_by_hand():
    """Words: 40 of 1, 40 of 2, 40 of 5; scores follow the ratings in java and run against them in go."""
    references = ["a"] * 40 + ["a b"] * 40 + ["a b c d e"] * 40
    languages = ["java", "go"] * 60
    values = np.random.default_rng(0).normal(size=120)
    scores = np.where(np.array(languages) == "java", values, -values)
    rated = Ratings(
        "set", references, references, values, groups={"language": languages, "system": ["x"] * 120}
    )
    found = groups(rated, {"m": scores})
    assert [(g.by, g.label, g.pairs) for g in found] == [
        ("language", "go", 60),
        ("language", "java", 60),
        ("length", "1 word", 40),
        ("length", "2 words", 40),
        ("length", "5 words", 40),
    ]
    assert [g.spearman["m"] for g in found[:2]] == pytest.approx([-1, 1])


def row(metric, rho, p_value=1e-9):
    return Result(metric, rho, p_value, rho - 0.05, rho + 0.05, None, math.nan, math.nan, math.nan, [])


def test_what_can_be_said():
    rows = [row("b", 0.837), row("a", 0.836), row("c", 0.4, 0.01)]
    p = np.array([[1, 0.93, 0.001], [0.93, 1, 0.001], [0.001, 0.001, 1]])
    people = Agreement(3, 0.6, 0.6, 0.8, ceiling(0.8), [0.7, 0.81, math.nan])
    test = "(permutation test at 0.05, Holm's correction for 3 comparisons)"
    assert in_words(rows, p, 210, people) == [
        "b agrees best with people: Spearman .837, 95% interval .787 to .887.",
        f"210 pairs cannot separate it from a (.836): here a lead of .001 may be chance {test}.",
        f"It is significantly better than c {test}.",
        "Not significant at p < 0.001: c.",
        "One of the 3 raters correlates with the mean of the others at .700 to .810, half of them with the "
        "other half at .800: against the mean of all a metric can be expected to reach .943 (Spearman and "
        "Brown).",
    ]
    rows = [
        replace(row, kendall=k, pearson=0.5 - k, pairwise_accuracy=k)
        for row, k in zip(rows, (0.4, 0.3, 0.1), strict=True)
    ]
    said = in_words(rows, p, 29, None)
    assert said[-2:] == [
        "29 pairs are few: intervals of a bootstrap over fewer than 30 are too narrow.",
        "Other measures put others first: c by Pearson's r.",
    ]
