import gzip
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from simllm.errors import InputError
from tests.browser import check_page, needs_browser
from tests.conftest import ROOT
from tests.train.corpus.conftest import lines, rows
from train.corpus import __main__ as corpus_command
from train.corpus import build
from train.corpus.config import CorpusConfig
from train.corpus.engine import OneMachine

pytestmark = pytest.mark.slow

FILES = ("train.txt", "test.txt", "comments.jsonl", "pairs.jsonl", "report.json", "report.html")


def test_real_corpus_is_cleaned_deduplicated_and_split(corpus_file, comments, tmp_path):
    built = build.build(CorpusConfig((str(corpus_file),)), tmp_path / "corpus")
    train, test = lines(tmp_path / "corpus", "train.txt"), lines(tmp_path / "corpus", "test.txt")
    counts = built["counts"]
    assert counts["read"] == len(comments) == sum(counts.values()) - counts["read"]
    assert (counts["train"], counts["test"]) == (len(train), len(test))
    assert 0.07 < len(test) / (len(train) + len(test)) < 0.13
    assert len({*train, *test}) == len(train) + len(test)
    assert counts["duplicate"] > 0
    data = b"".join((tmp_path / "corpus" / name).read_bytes() for name in ("train.txt", "test.txt"))
    assert built["sha256"] == hashlib.sha256(data).hexdigest()
    assert built == json.loads((tmp_path / "corpus" / "corpus.json").read_text())


def test_the_command_builds_a_corpus_from_source_trees(tree, tmp_path, command):
    for name in ("one", "two", "three"):
        tree(tmp_path / "sources" / name)
    done = command("build", tmp_path / "sources", "--out", tmp_path / "corpus", "--test-share", "0.4")
    assert done.returncode == 0, done.stderr
    assert "report.html" in done.stdout
    found = rows(tmp_path / "corpus", "comments.jsonl")
    assert {row["repository"] for row in found} == {"one", "two", "three"}
    area = next(row for row in found if row["function"] == "Base.area")
    assert area["summary"] == "Returns how much room the shape takes on the page."
    assert area["description"].endswith("it is never negative.")
    texts = {*lines(tmp_path / "corpus", "train.txt"), *lines(tmp_path / "corpus", "test.txt")}
    assert "returns how much room the shape takes on the page ." in texts
    assert "the result is in square points , and it is never negative ." in texts
    held = {row["repository"] for row in found if row["split"] == "test"}
    assert len(held) == 1
    assert not held & {row["repository"] for row in found if row["split"] == "train"}


def test_pairs_come_from_descriptions_and_overrides(tree, tmp_path):
    build.build(CorpusConfig((str(tree(tmp_path / "code" / "shapes").parent),)), tmp_path / "corpus")
    pairs = {row["kind"]: (row["a"], row["b"]) for row in rows(tmp_path / "corpus", "pairs.jsonl")}
    whole = "returns how much room the shape takes on the page ."
    assert pairs["description"] == (whole, "the result is in square points , and it is never negative .")
    assert pairs["override"] == ("calculates the surface of this circle .", whole)


def test_corpus_does_not_depend_on_the_number_of_workers(tree, tmp_path, monkeypatch):
    for name in ("one", "two", "three", "four"):
        tree(tmp_path / "sources" / name, 60)
    monkeypatch.setattr(build, "BATCH", 2000)
    config = CorpusConfig((str(tmp_path / "sources"),))
    build.build(config, tmp_path / "one", OneMachine(1))
    build.build(config, tmp_path / "three", OneMachine(3))
    for name in FILES:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "three" / name).read_bytes()


def test_resumed_build_gives_the_same_corpus(tmp_path, comments):
    rows = (f"{comment.split('.')[0]} number {n}" for n in range(40) for comment in comments)
    (tmp_path / "many.txt").write_text("\n".join(" ".join(row.split()) for row in rows))
    arguments = [sys.executable, "-m", "train.corpus", "build", str(tmp_path / "many.txt"), "--workers", "2"]
    whole = subprocess.run([*arguments, "--out", tmp_path / "whole"], cwd=ROOT, check=False)
    assert whole.returncode == 0
    process = subprocess.Popen([*arguments, "--out", tmp_path / "killed"], cwd=ROOT, start_new_session=True)
    scratch = tmp_path / ".killed.parts"
    while not list(scratch.glob("*.npz")):
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = {file: file.stat().st_mtime_ns for file in scratch.glob("*.npz")}
    assert not (tmp_path / "killed").exists()
    stamps = {}
    process = subprocess.Popen([*arguments, "--out", tmp_path / "killed"], cwd=ROOT)
    while process.poll() is None:
        stamps |= {file: file.stat().st_mtime_ns for file in kept if file.exists()}
        time.sleep(0.02)
    assert stamps == kept
    for name in FILES:
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert not scratch.exists()


def test_rejected_comments_are_counted(tmp_path):
    texts = [
        "adds two lists",
        "Adds two lists.",
        "adds",
        "12 34",
        "gets the rated name",
        "sets the key",
        "x " * 20000,
    ]
    texts += [f"gets the {word} name" for word in ("first", "last", "full", "short", "long", "other", "user")]
    with gzip.open(tmp_path / "texts.jsonl.gz", "wt") as file:
        file.writelines(json.dumps({"text": text, "language": "java"}) + "\n" for text in texts)
    rated = {"reference": "Gets the RATED name", "candidate": "x", "candidate_clean": "sets the key."}
    (tmp_path / "rated.jsonl").write_text(json.dumps(rated))
    config = CorpusConfig((str(tmp_path / "texts.jsonl.gz"),), (str(tmp_path / "rated.jsonl"),), 0.4)
    counts = build.build(config, tmp_path / "corpus")["counts"]
    assert counts["duplicate"] == 1
    assert counts["fewer than two words"] == 2
    assert counts["in a rated set"] == 2
    assert counts["too long"] == 1
    assert counts["train"] + counts["test"] == 8


def test_finished_corpus_is_not_built_again(corpus_file, tmp_path):
    config = CorpusConfig((str(corpus_file),))
    first = build.build(config, tmp_path / "corpus")
    stamp = (tmp_path / "corpus" / "train.txt").stat().st_mtime_ns
    assert build.build(config, tmp_path / "corpus") == first
    assert (tmp_path / "corpus" / "train.txt").stat().st_mtime_ns == stamp
    other = build.build(CorpusConfig(config.sources, test_share=0.3), tmp_path / "corpus")
    assert other["counts"]["test"] > first["counts"]["test"]


def test_corpus_is_built_again_if_an_excluded_file_changed(corpus_file, tmp_path):
    rated = tmp_path / "rated.jsonl"
    rated.write_text(json.dumps({"candidate": "x", "reference": "no such comment", "rating": 1}) + "\n")
    config = CorpusConfig((str(corpus_file),), exclude=(str(rated),))
    build.build(config, tmp_path / "corpus")
    text = lines(tmp_path / "corpus", "train.txt")[0]
    with rated.open("a") as file:
        file.write(json.dumps({"candidate": "x", "reference": text, "rating": 1}) + "\n")
    build.build(config, tmp_path / "corpus")
    assert text not in lines(tmp_path / "corpus", "train.txt")


def test_corpus_can_be_a_source(tree, tmp_path):
    tree(tmp_path / "code" / "shapes")
    built = build.build(CorpusConfig((str(tmp_path / "code"),)), tmp_path / "corpus")
    taken = build.build(CorpusConfig((str(tmp_path / "corpus"),)), tmp_path / "again")
    for name in FILES:
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "corpus" / name).read_bytes()
    assert taken["sha256"] == built["sha256"]
    (tmp_path / "rated.jsonl").write_text(
        '{"reference": "counts the value of kind 7 in shapes", "candidate": "a b"}'
    )
    rated = CorpusConfig((str(tmp_path / "corpus"),), (str(tmp_path / "rated.jsonl"),))
    counts = build.build(rated, tmp_path / "third")["counts"]
    assert counts["in a rated set"] == 1
    assert counts["train"] + counts["test"] == built["counts"]["train"] + built["counts"]["test"] - 1


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.jsonl", b'{"text": "adds two"}\n{"text": 1}\n', 'line 2: expected a text under "text"'),
        ("a.jsonl", b'{"text": "adds two"}\n{\n', "line 2: not JSON"),
        ("a.jsonl", b"[]\n", "line 1: is a JSON array; expected one object"),
        ("a.txt", b"adds two\n\xff\n", "not UTF-8"),
        ("a.txt.gz", b"not gzipped", "cannot be read"),
        ("a.txt.gz", gzip.compress(b"adds two\n" * 9999, mtime=0)[:60], "ends in the middle, after line"),
        ("a.txt", b"", "too few texts"),
    ],
)
def test_only_bad_sources_are_an_error(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=message) as error:
        build.build(CorpusConfig((str(tmp_path / name),)), tmp_path / "corpus")
    assert name in str(error.value)
    assert not (tmp_path / "corpus").exists()


def test_bad_sources_beside_good_ones_are_counted_and_reported(corpus_file, tmp_path, call):
    (tmp_path / "bad.txt").write_bytes(b"adds two\n\xff\n")
    arguments = [corpus_file, tmp_path / "bad.txt", "--out", tmp_path / "corpus", "--workers=1"]
    done = call(corpus_command, "build", *arguments)
    assert done.returncode == 0
    assert "bad.txt, line 2: not UTF-8" in done.stderr
    report = json.loads((tmp_path / "corpus" / "report.json").read_text())
    assert report["found"]["files"]["counts"]["unreadable file"] == 1


def test_unreadable_files_do_not_stop_the_build(tree, tmp_path, call):
    code = tree(tmp_path / "all" / "code")
    (code / "latin.py").write_bytes('def f():\n    """Zählt die Dinge der Straße."""\n'.encode("latin-1"))
    (code / "broken.py").write_bytes(b'def f(:\n    """Counts what is broken."""\n  ((((' + b"(" * 10_000)
    (code / "zeros.js").write_bytes(b"\0" * 100_000)
    (code / "line.js").write_text("var a = [" + "1," * 400_000 + "]")
    (code / "deep.py").write_text('def f():\n    """Is nested deep."""\n\n\nx = ' + "[" * 50_000)
    (code / "empty.go").write_text("")
    done = call(corpus_command, "build", tmp_path / "all", "--out", tmp_path / "corpus")
    assert done.returncode == 0, done.stderr
    files = json.loads((tmp_path / "corpus" / "corpus.json").read_text())["files"]
    assert files["read"] == 46
    assert len(lines(tmp_path / "corpus", "comments.jsonl")) >= 43


def test_empty_corpus_gives_one_line_and_exit_status_2(tmp_path, call):
    (tmp_path / "code" / "empty").mkdir(parents=True)
    done = call(corpus_command, "build", tmp_path / "code", "--out", tmp_path / "corpus")
    assert done.returncode == 2
    assert "too few texts" in done.stderr
    assert not (tmp_path / "corpus").exists()


def test_codesearchnet_passes_the_same_filters(tmp_path):
    docstrings = [f"Adds {n} to the list.\n\nMore of it.\n\n:param a: a list" for n in range(40)]
    docstrings += ["Deprecated: do not use.", ":return: nothing"]
    with (tmp_path / "python_train_0.jsonl").open("w") as file:
        for n, text in enumerate(docstrings):
            row = {"docstring": text, "func_name": f"C.f{n}", "repo": f"a/{n % 20}", "path": "a.py"}
            file.write(json.dumps(row | {"language": "python", "partition": "train"}) + "\n")
    built = build.build(CorpusConfig((str(tmp_path / "*.jsonl"),)), tmp_path / "corpus")
    found = rows(tmp_path / "corpus", "comments.jsonl")
    assert {row["summary"] for row in found} == {f"Adds {n} to the list." for n in range(40)}
    assert found[0]["repository"] == "a/0"
    assert sum(built["comments_left_out"].values()) == 2
    assert built["counts"]["duplicate"] == 39


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none/*.txt"], "source 'none/*.txt': no such file"),
        ([], "sources must not be empty"),
        (["--installed-python", "--test-share", "1.5"], "test_share must be between 0 and 1"),
        (["--installed-python", "--exclude", "none.jsonl"], "source 'none.jsonl': no such file"),
        (["--installed-python", "--tags", "-1"], "tags must not be negative"),
    ],
)
def test_bad_input_gives_one_line_and_exit_status_2(arguments, message, tmp_path, call):
    done = call(corpus_command, "build", *arguments, "--out", tmp_path / "corpus")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


@needs_browser
def test_the_report_in_a_browser(corpus_file, tmp_path):
    build.build(CorpusConfig((str(corpus_file),)), tmp_path / "corpus")
    check_page(tmp_path / "corpus" / "report.html", tmp_path, height=1500)


def test_report_is_one_self_contained_file(corpus_file, tmp_path):
    import xml.etree.ElementTree as ET

    hostile = {"text": "<script>alert(1)</script> & so on, and more", "language": "<i>"}
    with corpus_file.open("a") as file:
        file.write(json.dumps(hostile) + "\n")
    build.build(CorpusConfig((str(corpus_file),)), tmp_path / "corpus")
    page = (tmp_path / "corpus" / "report.html").read_text()
    assert "<script" not in page
    assert not re.search('(src|href)="(?!#|data:)', page)
    for svg in page.split("<svg")[1:]:
        ET.fromstring("<svg" + svg.split("</svg>")[0] + "</svg>")
    report = json.loads((tmp_path / "corpus" / "report.json").read_text())
    assert sum(report["lengths"]["summary"].values()) == report["vocabulary"][-1][0]
    assert len(report["samples"]["unknown"]) == 10


def test_too_few_texts_tell_how_many_are_needed(tmp_path):
    (tmp_path / "texts.txt").write_text("opens a door\nsells two houses\nmows the lawn\n")
    config = CorpusConfig((str(tmp_path / "texts.txt"),), test_share=0.05)
    with pytest.raises(
        InputError, match=r"too few texts \(3 read, .*3 train, 0 test\); training and test"
    ) as error:
        build.build(config, tmp_path / "corpus")
    assert "about 59 different texts are enough at a test share of 0.05" in str(error.value)
    assert "{" not in str(error.value)
