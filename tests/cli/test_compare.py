"""`simllm compare` with several metrics, tables of texts, baselines and functions of the user."""

import csv
import gzip
import json
import sys

import pytest

from simllm.metrics import registry
from simllm.metrics.interface import UnavailableError
from tests.command import run

REFERENCES = [
    "returns the name of the file",
    "opens the file and reads all lines",
    "sorts the list of numbers in place",
    "removes all keys from the cache",
    "writes the table to the output file",
    "counts the words of the given text",
    "closes the connection to the server",
    "adds two numbers",
]
GOOD = [text.replace("the", "a", 1) for text in REFERENCES]
BAD = ["does something"] * 7 + ["adds two numbers"]
NAMES = "rouge-l,bleu,chrf"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, lines in {"r": REFERENCES, "good": GOOD, "bad": BAD, "worse": ["?"] * 8}.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n")
    return tmp_path


FILES = ("compare", "-r", "r.txt", "-c", "good.txt", "bad.txt", "worse.txt")


def compared(*words):
    done = run(*words, "-f", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_several_metrics_in_one_comparison():
    found = compared(*FILES, "--metrics", NAMES)
    assert list(found["metrics"]) == NAMES.split(",")
    for name, one in found["metrics"].items():
        assert {key: one[key] for key in ("systems", "differences", "wins")} == {
            key: compared(*FILES, "--metrics", name)[key] for key in ("systems", "differences", "wins")
        }
    text = run(*FILES, "--metrics", NAMES, "-f", "text").stdout
    assert text.split()[:4] == ["mean", "rouge-l", "bleu", "chrf"]
    for words in ("rouge-l: wins over", "Holm-corrected within each metric", "corpus bleu of good: "):
        assert words in text


def test_bleu_without_common_words_is_zero_and_no_win():
    found = compared(*FILES, "--metrics", "bleu")
    means = {one["name"]: one["mean"] for one in found["systems"]}
    assert means["worse"] == 0
    # One text, of three words, is equal to its reference; nothing else of the two systems is above 0.
    assert means["bad"] == 1 / 8
    assert found["wins"][1][2] == (1 + 7 / 2) / 8
    assert any("of fewer than 4 words" in message for message in found["warnings"])


def test_corpus_bleu_is_that_of_sacrebleu():
    sacrebleu = pytest.importorskip("sacrebleu")
    found = compared(*FILES, "--metrics", "bleu")["corpus"]
    expected = sacrebleu.corpus_bleu(GOOD, [REFERENCES], tokenize="none").score / 100
    assert found["good"] == pytest.approx(expected)


def test_latex_without_intervals_has_no_lines_for_them(folder):
    for file in folder.glob("*.txt"):
        file.write_text("".join(file.read_text().splitlines(keepends=True)[:5]))
    table = run(*FILES, "--metrics", NAMES, "-f", "latex").stdout
    body = table.split("\\midrule\n")[1].split("\\bottomrule")[0].splitlines()
    assert [line.count("&") for line in body] == [6] * 3
    assert "Brackets" not in table


def test_latex_says_what_p_and_star_mean():
    table = run(*FILES, "--metrics", NAMES, "-f", "latex").stdout
    assert "\\cmidrule(lr){2-3} \\cmidrule(lr){4-5} \\cmidrule(lr){6-7}" in table
    body = table.split("\\midrule\n")[1].split("\\bottomrule")[0].splitlines()
    assert [line.count("&") for line in body] == [6, 3] * 3  # means and p, and intervals below
    systems = compared(*FILES, "--metrics", NAMES)["metrics"]["chrf"]["systems"]
    assert f"$[{systems[1]['low']:.3f}, {systems[1]['high']:.3f}]$" in body[3].split("&")[3]
    assert "Brackets: 95\\% bootstrap intervals." in table
    assert "differs from every other system ($p < .05$)" in table
    against = run(*FILES, "--metrics", "chrf", "--baseline", "bad", "-f", "latex").stdout
    assert "differs from bad ($p < .05$)" in against
    assert "\nbad & $" in against
    assert next(line for line in against.splitlines() if line.startswith("bad")).endswith("& -- \\\\")


def write_tables(folder):
    rows = [
        dict(zip(("ref", "good", "bad"), texts, strict=True))
        for texts in zip(REFERENCES, GOOD, BAD, strict=True)
    ]
    (folder / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for suffix, delimiter in (("csv", ","), ("tsv", "\t")):
        with (folder / f"t.{suffix}").open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0], delimiter=delimiter)
            writer.writeheader()
            writer.writerows(rows)


def test_tables_give_the_result_of_files(folder):
    write_tables(folder)
    expected = compared("compare", "-r", "r.txt", "-c", "good.txt", "bad.txt", "--metrics", "chrf")
    for table in ("t.jsonl", "t.csv", "t.tsv"):
        words = ("compare", "--table", table, "-r", "ref", "-c", "good", "bad", "--metrics", "chrf")
        assert compared(*words) == expected, table
    assert compared("compare", "--jsonl", *words[2:]) == expected


def test_a_table_may_have_different_numbers_of_references(folder):
    rows = [{"ref": [r, "?"] if i % 2 else r, "a": g, "b": b} for i, (r, g, b) in
            enumerate(zip(REFERENCES, GOOD, BAD, strict=True))]  # fmt: skip
    (folder / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("compare", "--table", "t.jsonl", "-r", "ref", "-c", "a", "b", "--metrics", "jaccard")
    one = compared("compare", "-r", "r.txt", "-c", "good.txt", "bad.txt", "--metrics", "jaccard")
    # The second reference, "?", never scores higher than the first.
    assert [s["mean"] for s in compared(*words)["systems"]] == [s["mean"] for s in one["systems"]]
    done = run(*words, "--over", "mean")
    assert done.returncode == 2
    assert "t.jsonl, line 2: 2 references, but 1 before; --over mean needs as many" in done.stderr


@pytest.mark.parametrize("metric", ["simllm", "jaccard"])
def test_an_empty_reference_beside_another_is_none(folder, metric):
    lines = [*GOOD[:6], "", ""]  # an empty candidate equals an empty reference
    columns = {"ref1": REFERENCES, "ref2": [*REFERENCES[:6], "", " "], "a": lines, "b": BAD}
    for name, column in columns.items():
        (folder / f"{name}.txt").write_text("".join(line + "\n" for line in column))
    with (folder / "gap.csv").open("w", newline="") as file:
        csv.writer(file).writerows([list(columns), *zip(*columns.values(), strict=True)])
    (folder / "gap.jsonl").write_text(
        "".join(
            json.dumps({"ref": [r for r in (row[0], row[1]) if r.strip()], "a": row[2], "b": row[3]}) + "\n"
            for row in zip(*columns.values(), strict=True)
        )
    )
    asked = ("--metrics", metric)
    expected = compared("compare", "--table", "gap.csv", "-r", "ref1", "-c", "a", "b", *asked)["systems"]
    assert expected[0]["mean"] < 0.9
    table = ("compare", "--table", "gap.csv", "-r", "ref1", "ref2", "-c", "a", "b", *asked)
    files = ("compare", "-r", "ref1.txt", "ref2.txt", "-c", "a.txt", "b.txt", *asked)
    lists = ("compare", "--table", "gap.jsonl", "-r", "ref", "-c", "a", "b", *asked)
    for words in (table, files, lists):
        assert compared(*words)["systems"] == expected
    for words, place in (
        (table, "gap.csv, row 7"),
        (files, "ref1.txt, line 7"),
        (lists, "gap.jsonl, line 7"),
    ):
        done = run(*words, "--over", "mean")
        assert done.returncode == 2
        assert f"{place}: 1 reference, but 2 before; --over mean needs as many" in done.stderr


def test_an_item_without_any_reference_keeps_the_policy_of_empty_texts(folder):
    (folder / "t.csv").write_text("ref1,ref2,a,b\n,,,x\nx,x,x,y\n")
    words = ("compare", "--table", "t.csv", "-r", "ref1", "ref2", "-c", "a", "b", "--metrics", "jaccard")
    for over in ("max", "mean"):
        assert [one["mean"] for one in compared(*words, "--over", over)["systems"]] == [1, 0]


def test_names_of_tables(folder):
    write_tables(folder)
    words = ("-r", "ref", "-c", "good", "bad", "--metrics", "jaccard")
    expected = compared("compare", "--table", "t.csv", *words)
    (folder / "T.CSV").write_bytes((folder / "t.csv").read_bytes())
    (folder / "U.TSV.GZ").write_bytes(gzip.compress((folder / "t.tsv").read_bytes()))
    (folder / "lines.txt").write_bytes((folder / "t.jsonl").read_bytes())
    for table in ("T.CSV", "U.TSV.GZ", "lines.txt"):
        assert compared("compare", "--table", table, *words) == expected, table
    (folder / "t.txt").write_bytes((folder / "t.csv").read_bytes())
    (folder / "t.xlsx").write_bytes(b"PK\x03\x04\x14\x00\x06\x00")
    for table in ("t.txt", "t.xlsx"):
        done = run("compare", "--table", table, *words)
        assert done.returncode == 2
        assert done.stderr.endswith("; the name of a table ends in .csv, .tsv or .jsonl\n"), done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_a_csv_file_in_the_encoding_of_excel_gets_the_remedy(folder, encoding):
    (folder / "t.csv").write_bytes("ref,a,b\nöffnet es,x,y\n".encode(encoding))
    done = run("compare", "--table", "t.csv", "-r", "ref", "-c", "a", "b")
    assert done.returncode == 2
    assert "UTF-8" in done.stderr
    assert done.stderr.endswith('; save it as "CSV UTF-8"\n')


def test_a_missing_library_names_the_extra(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("nltk.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "nltk", None)  # as if it were not installed
    with pytest.raises(UnavailableError, match=r"nltk is not installed; .* run pip install '\.\[eval\]'"):
        registry.load("bleu")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*FILES, "--baseline", "x"), "--baseline x: expected one of the systems good, bad, worse"),
        ((*FILES, "--metrics", "bleu,codebleu"), "--metrics codebleu: expected a metric for texts"),
        ((*FILES, "--metrics", NAMES, "--report", "p.html"), "--report shows one metric"),
        (
            ("compare", "--table", "t.csv", "-r", "ref", "-c", "good", "x"),
            'expected a text under "x"; it has ref, good, bad',
        ),
        (("compare", "--table", "t.csv", "-r", "ref", "-c", "bad", "bad"), "-c bad: is named twice"),
        ((*FILES, "--metrics", "no_such:f"), "no_such cannot be imported"),
        ((*FILES, "--metrics", "my.py:f"), "my.py has no function f"),
        ((*FILES, "--metrics", "my.py:one"), "returned one number for 24 pairs; expected a function of a l"),
        (
            (*FILES, "--metrics", "my.py:fails"),
            "raised ZeroDivisionError: division by zero in line 2 of my.py",
        ),
        ((*FILES, "--metrics", "my.py:ends"), "raised SystemExit: 3 in line 3 of my.py"),
    ],
)
def test_mistakes_are_one_line(folder, words, message):
    write_tables(folder)
    (folder / "my.py").write_text(
        "def one(c, r): return 1\ndef fails(c, r): return 1 / 0\ndef ends(c, r): raise SystemExit(3)\n"
    )
    done = run(*words)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_function_is_a_metric_in_every_command(folder):
    (folder / "shared_words.py").write_text(
        "def share(candidates, references):\n"
        "    assert all(candidates + references)\n"
        "    pairs = zip(candidates, references)\n"
        "    return [len({*c.split()} & {*r.split()}) / len({*r.split()}) for c, r in pairs]\n"
    )
    found = compared(*FILES, "--metrics", "shared_words.py:share,jaccard")["metrics"]
    assert [one["mean"] for one in found["shared_words.py:share"]["systems"]][1:] == [1 / 8, 0]
    assert "|source:" in found["shared_words.py:share"]["signature"]
    rows = [{"candidate": c, "reference": r} for c, r in [("a b", "a c"), ("", ""), ("", "x")]]
    (folder / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run("score", "--jsonl", "p.jsonl", "--metrics", "shared_words.py:share", "-f", "json")
    assert [row["shared_words.py:share"] for row in json.loads(done.stdout)["rows"]] == [0.5, 1, 0]
    assert "they score 1 if both texts are equal, otherwise 0" in done.stderr


def test_what_a_function_prints_is_no_result(folder):
    lines = "def f(candidates, references):\n    print('scoring')\n    return [len(x) for x in candidates]\n"
    (folder / "my.py").write_text(lines)
    done = run(*FILES, "--metrics", "my.py:f", "-f", "json")
    assert json.loads(done.stdout)
    assert "scoring" in done.stderr
