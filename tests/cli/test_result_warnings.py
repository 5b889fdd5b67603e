"""Warnings about results that mean little: on standard error, and in every format with a summary."""

import json

import pytest

from tests.command import run


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def write(**files):
    for name, lines in files.items():
        with open(name, "w", encoding="utf-8") as file:  # noqa: PTH123
            file.writelines(f"{json.dumps(line) if isinstance(line, dict) else line}\n" for line in lines)


def told(*arguments):
    """Run a command with JSON output; return the result and its warnings, which standard error repeats."""
    done = run(*arguments, "-f", "json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    found = result.get("warnings", [])
    lines = [line for line in done.stderr.splitlines() if line.startswith("simllm: warning: ")]
    assert [line.removeprefix("simllm: warning: ") for line in lines] == found
    quiet = run(*arguments, "-f", "json", "-q")
    assert (quiet.stdout, quiet.stderr) == (done.stdout, "")
    return result, found


def test_blank_lines_at_the_end_of_both_files_are_no_pairs(model_folder):
    write(c=["removes a key", "", "stops", "", " ", ""], r=["drops an entry", "", "halts", "", "", ""])
    for extra in (("--model", model_folder), ("--metrics", "jaccard")):
        result, found = told("score", "-c", "c", "-r", "r", *extra)
        assert [row["candidate"] for row in result["rows"]] == ["removes a key", "", "stops"]
        assert found[0] == "3 blank lines at the end of all files are left out"
        assert "1 of 3 pairs have a text " in found[1]  # the empty pair in the middle counts, and is told
    plain = run("score", "-c", "c", "-r", "r", "--model", model_folder, "-f", "tsv", "-o", "out.tsv")
    assert "simllm: warning: 3 blank lines at the end" in plain.stderr
    assert len(open("out.tsv").read().splitlines()) == 4  # noqa: PTH123, SIM115


def test_blank_lines_at_the_end_of_one_file_are_empty_texts(model_folder):
    write(c=["removes a key", "", ""], r=["drops an entry", "", "stops"])
    result, found = told("score", "-c", "c", "-r", "r", "--model", model_folder)
    assert [row["score"] for row in result["rows"][1:]] == [1, 0]
    assert found == [
        "2 of 3 pairs have a text that is empty; they score 1 if both texts are equal, otherwise 0"
    ]


def test_files_of_blank_lines_are_refused():
    write(c=["", " "], r=["", ""])
    for command in (("score", "-c", "c", "-r", "r"), ("compare", "-r", "r", "-c", "c", "d")):
        write(d=["", ""])
        done = run(*command)
        assert done.returncode == 2
        assert "blank" in done.stderr


def test_the_same_file_as_candidates_and_references(model_folder):
    write(c=["removes a key", "stops", "sorts the keys"], r=["removes a key", "stops", "orders all entries"])
    message = "all 3 candidates are equal to their references; are they the same file?"
    for extra in (("--model", model_folder), ("--metrics", "chrf")):
        assert told("score", "-c", "c", "-r", "c", *extra)[1] == [message]
    assert told("score", "-c", "c", "-r", "r", "--model", model_folder)[1] == [
        "2 of 3 candidates are equal to their references"
    ]


def test_warnings_of_several_files_are_in_their_summaries(folder, model_folder):
    (folder / "in").mkdir()
    for name in "ab":
        line = json.dumps({"candidate": "removes a key", "reference": "ключ"})
        (folder / "in" / f"{name}.jsonl").write_text(f"{line}\n")
    done = run("score", "--jsonl", "in/*", "-o", "out", "--model", model_folder)
    message = (
        "1 of 1 pairs have a text that is empty after cleaning (the model reads ASCII); they score 1 if both"
    )
    assert f"simllm: warning: a.tsv: {message}" in done.stderr
    tables = json.loads((folder / "out" / "summary.json").read_text())["tables"]
    assert tables["b.tsv"]["warnings"][0].startswith(message)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (2, "2 items: no difference can be significant, since p is at least 0.5; no intervals are given"),
        (4, "4 items: no difference can be significant, since p is at least 0.125; no intervals are given"),
        (5, "5 items: no difference can be significant, since p is at least 0.0625; no intervals are given"),
        (6, None),
    ],
)
def test_few_items_of_a_comparison(model_folder, items, message):
    verbs = ["removes", "sorts", "prints", "reads", "closes", "counts"][:items]
    write(a=[f"{v} it" for v in verbs], b=[f"{v} all" for v in verbs], r=[f"{v} the file" for v in verbs])
    result, found = told("compare", "-r", "r", "-c", "a", "b", "--model", model_folder)
    assert found == ([message] if message else [])
    assert result["n"] == items
    known = items >= 6
    for row in (*result["systems"], *result["differences"]):
        assert (row["low"] is not None, row["high"] is not None) == (known, known)
    for form, prefix in (("text", "warnings: "), ("latex", "% warning: ")):
        shown = run(
            "compare", "-r", "r", "-c", "a", "b", "--model", model_folder, "-f", form
        ).stdout.splitlines()
        assert [line for line in shown if line.startswith(prefix)] == ([prefix + message] if message else [])


def test_equal_systems_and_copies_of_the_references_of_a_comparison(model_folder):
    lines = ["removes it", "sorts it", "prints it", "reads it", "closes it", "counts it"]
    write(a=[*lines, ""], b=[*lines, ""], c=["stops"] * 6 + [""], r=[*lines, ""])
    result, found = told("compare", "-r", "r", "-c", "a", "b", "c", "--model", model_folder)
    assert result["n"] == 6
    equal = "all 6 candidates are equal to their references; are they the same file?"
    assert found == [
        "1 blank line at the end of all files is left out",
        f"a: {equal}",
        f"b: {equal}",
        "a and b have the same scores on all items; are they the same texts, "
        "or does the metric not tell them apart?",
    ]


def rated(count, rating=lambda i: i, candidate=lambda i: f"removes {i} keys", **fields):
    return [
        {"reference": "removes all keys of a map", "candidate": candidate(i), "rating": rating(i), **fields}
        for i in range(count)
    ]


def texts(i):
    return " ".join("removes all keys of a map".split()[: i + 1])


def test_few_rated_pairs_have_no_interval():
    write(ratings=rated(4, candidate=texts))
    result, found = told("evaluate", "correlation", "--ratings", "ratings", "--metrics", "chrf")
    (row,) = result["rows"]
    assert row["spearman"] == pytest.approx(1)
    assert (row["low"], row["high"]) == (None, None)
    assert row["p_value"] == pytest.approx(2 / 24)
    assert found == ["4 rated pairs: p is at least 0.083, whatever the scores are; no intervals are given"]
    write(ratings=rated(6, candidate=texts))
    assert told("evaluate", "correlation", "--ratings", "ratings", "--metrics", "chrf")[1] == []


def test_correlations_that_depend_on_few_pairs_or_are_reversed():
    write(ratings=rated(6, candidate=texts, rating=lambda i: -i))
    command = ("evaluate", "correlation", "--ratings", "ratings", "--metrics", "chrf")
    assert told(*command)[1] == ["chrf: scores fall where ratings rise; is a high rating the better one?"]
    write(ratings=rated(12, rating=lambda i: int(i == 3), candidate=lambda i: texts(5 * (i == 3))))
    assert told(*command)[1] == [
        "11 of 12 pairs have the same rating (0); the correlation depends on the others",
        "chrf: 11 of 12 pairs have the same score (0.2941)",
    ]
    write(ratings=rated(6, candidate=lambda i: texts(5 if i < 4 else i - 4)))
    assert "4 of 6 candidates are equal to their references" in told(*command)[1]


def test_few_systems():
    rows = rated(6, candidate=texts, rating=lambda i: i // 2)
    write(ratings=[{**row, "system": f"s{row['rating']}"} for row in rows])
    command = ("evaluate", "correlation", "--ratings", "ratings", "--metrics", "chrf", "--level", "system")
    assert told(*command)[1] == [
        "3 systems are few: random scores order them like the ratings, or in reverse, with p = 0.33"
    ]


def test_few_and_tied_triples():
    triple = {"reference": "removes keys", "rewording": "drops entries", "kind": "k", "form": "balanced"}
    write(triples=[{**triple, "change": "adds files"}, {**triple, "change": "Drops entries"}])
    _, found = told("evaluate", "contrast", "--triples", "triples", "--metrics", "jaccard")
    assert found == [
        "2 triples are few: one of them moves an accuracy by 0.50",
        "1 of 2 triples have a rewording that equals the change after cleaning; they are ties",
        "jaccard: 2 of 2 triples are ties, which count half",
    ]


def test_few_summaries_of_the_robustness_test():
    write(summaries=["opens the first file", "counts all the lines"])
    _, found = told(
        "evaluate", "robustness", "--summaries", "summaries", "--metrics", "jaccard", "--examples", "0"
    )
    assert found == ["2 different summaries are few: each edit weighs much"]


@pytest.mark.slow
def test_a_study_keeps_its_warnings(folder):
    write(few=rated(4, candidate=texts))
    command = ("evaluate", "study", "--ratings", "few", "--metrics", "chrf,jaccard", "--questions", "rq5")
    _, found = told(*command, "--out", "out")
    assert found == [
        "few: 4 rated pairs: p is at least 0.083, whatever the scores are; no intervals are given"
    ]
    assert json.loads((folder / "out" / "study.json").read_text())["warnings"] == found
    assert found[0] in (folder / "out" / "report.html").read_text()


def test_code_without_a_score_is_told():
    row = {"source": "int a;", "reference": "int a;", "candidate": "int b;", "language": "java"}
    write(pairs=[row, {**row, "reference": "int c;"}])
    result, found = told("score", "--jsonl", "pairs", "--metrics", "rpsr")
    assert result["left out of mean rpsr"] == 1
    assert found == ["rpsr: 1 of 2 pairs have no score and are left out of its mean"]


def test_a_cut_text_of_an_explanation_is_told(model_folder):
    _, found = told("explain", "removes all keys " * 100, "drops keys", "--model", model_folder)
    assert found == ["1 of 2 texts cut at 64 tokens"]
