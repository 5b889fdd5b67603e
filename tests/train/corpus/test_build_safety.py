"""Safety of corpus builds: they keep files of the user, and a failed build can be resumed."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from importlib import metadata

import pytest

from simllm.errors import InputError
from simllm.io.output_folder import MARKER, OutputFolder
from tests.conftest import ROOT
from tests.train.corpus.conftest import lines, rows
from train.corpus import __main__ as corpus_command
from train.corpus import build, engine, source_trees
from train.corpus.config import PARTS, CorpusConfig
from train.corpus.decontaminate import ExcludedTexts
from train.corpus.engine import OneMachine
from train.corpus.parts import Tally

pytestmark = pytest.mark.slow  # many processes

COMMAND = [sys.executable, "-m", "train.corpus", "build"]


@pytest.fixture
def texts(tmp_path):
    """Write a file of a hundred texts."""
    file = tmp_path / "texts.txt"
    file.write_text("".join(f"adds number {n} to the list\n" for n in range(100)))
    return file


def config(*sources, **options):
    return CorpusConfig(tuple(map(str, sources)), **options)


def refused(done):
    """Return whether a command failed with one line and exit status 2."""
    return done.returncode == 2 and done.stderr.startswith("error: ") and done.stderr.count("\n") == 1


# The output folder


def test_foreign_folders_are_kept(texts, tmp_path, call):
    names = ("corpus.old", "corpus.partial", "corpus.parts", "diary")
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "diary.txt").write_text("Dear diary")
    done = call(corpus_command, "build", texts, "--out", tmp_path / "diary")
    assert refused(done)
    assert "holds files that simllm did not write" in done.stderr
    assert call(corpus_command, "build", texts, "--out", tmp_path / "corpus").returncode == 0
    assert all((tmp_path / name / "diary.txt").read_text() == "Dear diary" for name in names)
    assert {path.name for path in tmp_path.iterdir()} == {*names, "corpus", "texts.txt"}


def test_foreign_folder_of_parts_is_refused(texts, tmp_path):
    (tmp_path / ".corpus.parts").mkdir()
    (tmp_path / ".corpus.parts" / "000000-0123456789abcdef01234567.npz").write_text("mine")
    with pytest.raises(InputError, match=r"\.corpus\.parts: holds files that simllm did not write"):
        build.build(config(texts), tmp_path / "corpus")
    assert len([*(tmp_path / ".corpus.parts").iterdir()]) == 1


def test_user_file_among_the_parts_is_kept(texts, tmp_path):
    OutputFolder(tmp_path / ".corpus.parts", PARTS).own()
    (tmp_path / ".corpus.parts" / "notes.npz").write_text("mine")
    build.build(config(texts), tmp_path / "corpus")
    assert [path.name for path in (tmp_path / ".corpus.parts").iterdir() if path.name != MARKER] == [
        "notes.npz"
    ]


@pytest.mark.parametrize("text", ["not JSON", "[]", '{"config": {"sources": []}}', '{"name": "mine"}'])
def test_foreign_folder_with_a_corpus_json_is_refused(text, tree, texts, tmp_path):
    theirs = tree(tmp_path / "all" / "code")
    for name in ("corpus.json", "comments.jsonl", "train.txt", "test.txt", "pairs.jsonl"):
        (theirs.parent / name).write_text(text)
    with pytest.raises(InputError, match="holds files that simllm did not write"):
        build.build(config(texts), theirs.parent)
    built = build.build(config(theirs.parent), tmp_path / "corpus")
    assert built["files"]["read"] == 40
    assert (theirs.parent / "corpus.json").read_text() == text


@pytest.mark.parametrize(
    ("source", "out"),
    [
        ("all", "all"),
        ("all", "all/corpus"),
        ("all/code", "all"),
        ("all/*", "all/code"),
        ("all/*/m1.py", "all"),
        ("all/code/m1.py", "all/code"),
        ("link", "all/corpus"),
        ("all", "link/corpus"),
        ("installed-python", "all/corpus"),
    ],
)
def test_output_that_overlaps_a_source_is_refused(source, out, tree, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tree(tmp_path / "all" / "code", 3)
    (tmp_path / "link").symlink_to("all")
    monkeypatch.setattr(source_trees, "installed_folders", lambda: (tmp_path / "all", tmp_path / "packages"))
    with pytest.raises(InputError, match=r"is the source|holds files"):
        build.build(config(source), tmp_path / out)
    (tmp_path / "all" / MARKER).write_text('{"files": []}')
    with pytest.raises(InputError, match=r"is the source|holds files"):
        build.build(config(source), tmp_path / out)


def test_the_current_folder_is_refused(texts, tmp_path, call, monkeypatch):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    done = call(corpus_command, "build", texts, "--out", ".")
    assert refused(done)
    assert "current folder" in done.stderr
    assert not [*(tmp_path / "empty").iterdir()]


def test_unwritable_output_is_refused_before_the_work(texts, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "make_parts", None)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file: is not a folder"):
        build.build(config(texts), tmp_path / "file" / "corpus")


def test_second_build_of_one_output_is_refused(texts, tmp_path, call):
    os.mkfifo(tmp_path / "pipe")
    arguments = [*COMMAND, str(tmp_path / "pipe"), "--out", str(tmp_path / "corpus")]
    first = subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    with (tmp_path / "pipe").open("w") as pipe:  # waits until the first one reads
        done = call(corpus_command, "build", texts, "--out", tmp_path / "corpus")
        pipe.write(texts.read_text())
    assert first.wait(60) == 0
    assert refused(done)
    assert "another process is writing there" in done.stderr
    assert len(lines(tmp_path / "corpus", "train.txt")) > 80
    assert {path.name for path in tmp_path.iterdir()} == {"corpus", "pipe", "texts.txt"}


# Odd texts and names


def test_long_texts_and_tabs_are_shown_in_the_report(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        "".join(
            json.dumps({"summary": f"adds {n} " + "and more " * 60, "repository": "a\tb", "path": "c\td"})
            + "\n"
            for n in range(20)
        )
    )
    build.build(config(tmp_path / "a.jsonl"), tmp_path / "corpus")
    report = json.loads((tmp_path / "corpus" / "report.json").read_text())
    assert all(len(text) == 400 and where == "a\tb c\td" for text, where in report["samples"]["unknown"])


def test_names_and_texts_with_invalid_utf8(tree, tmp_path):
    # In Python, the byte FF in a file name is the character DCFF.
    source, out = tmp_path / "src\udcff", tmp_path / "out\udcff"
    tree(source / "code", 30).rename(source / "caf\udce9 é")
    text = 'def f():\n    """Zählt alle Dinge — and counts the names."""\n'
    (source / "caf\udce9 é" / "\udcff.py").write_text(text, encoding="utf-8")
    (tmp_path / "more.jsonl").write_text(
        '{"text": "adds two \\ud800 lists", "language": "\\udfff", "path": "\\ud800"}\n'
    )
    done = subprocess.run(
        [*COMMAND, source, tmp_path / "more.jsonl", "--out", out],
        cwd=ROOT, capture_output=True, env={"PATH": os.environ["PATH"]}, check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = rows(out, "comments.jsonl")
    assert {row.get("repository", "") for row in found} == {"", "caf\ufffd é"}
    assert {"\ufffd.py", "\ufffd"} < {row["path"] for row in found}
    report = json.loads((out / "report.json").read_text())
    assert any(name.endswith("src\ufffd") for name in report["sources"])
    assert "zahlt alle dinge - and counts the names ." in {
        *lines(out, "train.txt"),
        *lines(out, "test.txt"),
    }


# Parts


@pytest.fixture
def parts(tmp_path, monkeypatch):
    """Return a function that reads a small corpus and writes its parts, the intermediate files of a build."""
    monkeypatch.setattr(build, "BATCH", 2000)
    (tmp_path / "a.txt").write_text("".join(f"adds number {n} to the list\n" for n in range(100)))

    def make():
        asked = config(tmp_path / "a.txt")
        return build.make_parts(asked, tmp_path / "parts", OneMachine(1), ExcludedTexts(()), Tally())

    return make


def content(made):
    return [part.file.read_bytes() for part in made]


@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied", "swapped"])
def test_damaged_part_is_made_again(damage, parts, capsys):
    made = parts()
    whole, file = content(made), made[2].file
    data = bytearray(whole[2])
    data[len(data) // 2] ^= 1
    file.write_bytes(
        {"cut": whole[2][:-9], "flipped": data, "emptied": b"", "swapped": whole[2][::-1]}[damage]
    )
    with pytest.raises(InputError, match=r"is damaged; rerun the same command"):
        made[2].facts()
    stamps = [part.file.stat().st_mtime_ns for part in made]
    assert content(parts()) == whole
    assert f"{file}: is damaged; it is made again" in capsys.readouterr().err
    changed = [part.file.stat().st_mtime_ns != stamp for part, stamp in zip(made, stamps, strict=True)]
    assert changed == [n == 2 for n in range(len(made))]


def test_unreadable_part_is_an_error(parts, monkeypatch):
    made = parts()
    whole = content(made)

    def broken(self):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(type(made[0].file), "read_bytes", broken)
        with pytest.raises(InputError, match=r"\.npz: cannot be read \(Input/output error\)"):
            parts()
    assert content(made) == whole


def test_failed_build_is_resumed(tmp_path, texts, monkeypatch):
    monkeypatch.setattr(build, "BATCH", 2000)
    build.build(config(texts), tmp_path / "whole", OneMachine(1))
    made = []

    def make(data, file, excluded):
        made.append(file)
        if len(made) == 4:
            raise KeyboardInterrupt
        make_original(data, file, excluded)

    make_original = engine.make_part
    monkeypatch.setattr(engine, "make_part", make)
    with pytest.raises(KeyboardInterrupt):
        build.build(config(texts), tmp_path / "corpus", OneMachine(1))
    assert {path.name for path in tmp_path.iterdir()} == {"texts.txt", "whole", ".corpus.parts"}
    build.build(config(texts), tmp_path / "corpus", OneMachine(1))
    assert len(made) == len(set(made)) + 1
    for name in ("train.txt", "test.txt", "comments.jsonl", "report.json"):
        assert (tmp_path / "corpus" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"texts.txt", "whole", "corpus"}


def test_leftover_parts_of_a_finished_corpus_are_removed(tmp_path, texts):
    first = build.build(config(texts), tmp_path / "corpus")
    OutputFolder(tmp_path / ".corpus.parts", PARTS).own()
    (tmp_path / ".corpus.parts" / "000000-0123456789abcdef01234567.npz").write_text("left")
    assert build.build(config(texts), tmp_path / "corpus") == first
    assert not (tmp_path / ".corpus.parts").exists()


def test_parts_depend_on_library_versions(monkeypatch):
    build._version.cache_clear()
    first = build._version()
    installed = [*metadata.distributions()]

    class Newer:
        name, version = "rensa", "99"

    monkeypatch.setattr(metadata, "distributions", lambda: [*installed, Newer])
    build._version.cache_clear()
    assert build._version() != first
    build._version.cache_clear()


def test_full_disk_gives_a_one_line_error(tmp_path):
    (tmp_path / "many.txt").write_text("".join(f"adds {n} to the list number {n}\n" for n in range(3000)))

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    done = subprocess.run(
        [*COMMAND, str(tmp_path / "many.txt"), "--out", str(tmp_path / "corpus")],
        cwd=ROOT, capture_output=True, text=True, preexec_fn=limit, check=False, timeout=100,
    )  # fmt: skip
    assert refused(done)
    assert re.search(r"cannot be written \(File too large\)", done.stderr)
    assert not (tmp_path / "corpus").exists()
    assert [path.name for path in (tmp_path / ".corpus.parts").iterdir()] == [MARKER]


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_workers_end_when_their_parent_is_killed(kill, tmp_path):
    (tmp_path / "many.txt").write_text("".join(f"adds {n} to list {n * n}\n" for n in range(800_000)))
    command = [*COMMAND, str(tmp_path / "many.txt"), "--workers", "2", "--out", str(tmp_path / "corpus")]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True)
    while not [*(tmp_path / ".corpus.parts").glob("*.npz")]:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(kill)
    process.communicate(timeout=20)  # ends when no process holds the standard output
