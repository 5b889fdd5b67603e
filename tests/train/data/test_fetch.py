"""Fetching of data sets by the real command, from local repositories."""

import gzip
import os
import shutil
import signal
import subprocess
import sys

import pytest

from simllm.io.output_file import locked
from tests.conftest import ROOT
from tests.train.data.conftest import a_file, a_set, digest, fetch, packed_lines, write_catalog

LINES = {
    "repository": "owner/texts",
    "paths": ["a.txt"],
    "reader": "lines",
    "language": "java",
    "source": "a",
}
WORDS = {"repository": "owner/words", "paths": ["w.txt"], "reader": "antonyms"}
TEXTS = packed_lines([{"language": "java", "source": "a", "text": "Adds  two\tnumbers ."}])
PAIRS = packed_lines([{"a": "open", "b": "close", "label": "opposite"}])


@pytest.fixture
def catalog(host, tmp_path):
    """Write a catalog of two data sets with one file each; the texts of the first are stored unchanged."""
    host.publish("owner/texts", {"a.txt": "Adds  two\tnumbers .\n", "b.txt": "not asked for\n"})
    host.publish("owner/words", {"w.txt": "open close\n"})
    sets = [
        a_set("texts", [a_file("corpus/texts.jsonl.gz", [LINES], digest(TEXTS))]),
        a_set("words", [a_file("meaning/words.jsonl", [WORDS], digest(PAIRS))], "commercial use forbidden"),
    ]
    return write_catalog(tmp_path / "sets.yaml", host, sets)


@pytest.fixture
def run(catalog, host, tmp_path):
    def run(*arguments, host=host.folder, **environment):
        known = ["--catalog", catalog, "--root", tmp_path / "data", "--host", host]
        return fetch(*known, *arguments, **environment)

    return run


def files(folder):
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_fetches_all_sets_and_prints_their_terms(run, tmp_path):
    done = run()
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert gzip.decompress((tmp_path / "data/corpus/texts.jsonl.gz").read_bytes()) == TEXTS
    assert (tmp_path / "data/meaning/words.jsonl").read_bytes() == PAIRS
    assert "words: 1 texts; licence: MIT; commercial use forbidden\n" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "sets.yaml"]


def test_fetches_from_a_url_and_from_a_server_without_partial_clones(run, host, tmp_path):
    for repository in host.commits:
        for name in ("allowFilter", "allowAnySHA1InWant"):
            setting = ["config", "--unset", f"uploadpack.{name}"]
            subprocess.run(["git", "-C", host.folder / f"{repository}.git", *setting], check=True)
    done = run(host=host.folder.as_uri())
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "data/meaning/words.jsonl").read_bytes() == PAIRS


def test_intact_files_need_no_network(run, tmp_path):
    assert run().returncode == 0
    before = files(tmp_path / "data")
    done = run(host="file:///nowhere")
    assert (done.returncode, done.stderr) == (0, "texts: already there\nwords: already there\n")
    assert files(tmp_path / "data") == before


def test_fetches_only_the_named_sets(run, tmp_path):
    assert run("words").returncode == 0
    assert files(tmp_path / "data").keys() == {".simllm", "meaning/words.jsonl"}


def test_an_unknown_name_is_refused(run, tmp_path):
    done = run("words", "wrods")
    assert done.returncode == 2
    assert done.stderr == "error: 'wrods': no such data set; there are texts, words\n"
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-4], lambda data: b"", lambda data: gzip.compress(b"{}")]
)
def test_a_damaged_file_is_fetched_again_with_a_warning(run, tmp_path, damage):
    run("texts")
    file = tmp_path / "data/corpus/texts.jsonl.gz"
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    done = run()
    assert done.returncode == 0, done.stderr
    assert f"warning: {file}: damaged or changed; fetching it again\n" in done.stderr
    assert file.read_bytes() == whole


def test_a_wrong_checksum_is_refused_and_nothing_is_written(catalog, run, tmp_path):
    catalog.write_text(catalog.read_text().replace(digest(PAIRS), "ab" * 32))
    done = run("words")
    assert done.returncode == 2
    problem = f"not written; its SHA-256 is {digest(PAIRS)}, but {'ab' * 32} was expected"
    assert done.stderr.endswith(f"error: meaning/words.jsonl: {problem}\n")
    assert files(tmp_path / "data").keys() == {".simllm"}


def test_error_without_network_names_repository_and_file(run, tmp_path):
    done = run("words", host="https://localhost:1")
    assert done.returncode == 2
    *_, last = done.stderr.splitlines()
    start = "error: meaning/words.jsonl: owner/words: cannot be fetched at "
    assert last.startswith(start)
    assert " from https://localhost:1 (" in last


def test_missing_repository_and_missing_commit_are_errors(catalog, run, host):
    done = run("words", host=host.folder / "elsewhere")
    assert done.returncode == 2
    assert "error: meaning/words.jsonl: owner/words: cannot be fetched at " in done.stderr
    catalog.write_text(catalog.read_text().replace(host.commits["owner/words"], "ab" * 20))
    done = run("words")
    assert done.returncode == 2
    assert "error: meaning/words.jsonl: owner/words: cannot be fetched at " in done.stderr
    assert "Traceback" not in done.stderr


def test_missing_file_in_the_repository_is_an_error(catalog, run):
    catalog.write_text(catalog.read_text().replace("w.txt", "v.txt"))
    done = run("words")
    assert done.returncode == 2
    assert done.stderr.endswith(" (no file v.txt there)\n")


def test_sets_before_a_failure_are_kept_and_the_next_run_fetches_the_rest(run, host, tmp_path):
    away = host.folder / "owner/words.git"
    away.rename(away.with_suffix(".away"))
    assert run().returncode == 2
    assert files(tmp_path / "data").keys() == {".simllm", "corpus/texts.jsonl.gz"}
    away.with_suffix(".away").rename(away)
    done = run()
    assert done.returncode == 0
    assert done.stderr.startswith("texts: already there\n")
    assert (tmp_path / "data/meaning/words.jsonl").read_bytes() == PAIRS


def test_files_of_the_user_survive(run, tmp_path):
    root = tmp_path / "data"
    root.mkdir()
    (root / "thesis.txt").write_text("years of work")
    before = files(root)
    done = run()
    assert done.returncode == 2
    assert f"error: {root}: holds files that simllm did not write" in done.stderr
    assert files(root) == before


def test_user_file_at_the_path_of_a_set_is_kept(run, tmp_path):
    assert run("texts").returncode == 0
    mine = tmp_path / "data/meaning/words.jsonl"
    mine.parent.mkdir()
    mine.write_text("mine")
    done = run()
    assert done.returncode == 2
    assert done.stderr.endswith(f"error: {mine}: was not written by simllm; move it away\n")
    assert mine.read_text() == "mine"


def test_an_intact_copy_that_the_user_made_is_used(run, tmp_path):
    mine = tmp_path / "data/meaning/words.jsonl"
    mine.parent.mkdir(parents=True)
    mine.write_bytes(PAIRS)
    assert run("words").stderr == "words: already there\n"


def test_a_second_process_is_refused(run, tmp_path):
    with locked(tmp_path / "data"):
        done = run("words")
    assert done.returncode == 2
    assert done.stderr == f"error: {tmp_path / 'data'}: another process is writing there\n"


def test_a_killed_run_is_resumed(catalog, run, host, tmp_path):
    """The run is killed while it waits for the second repository, which a fake git delays."""
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text(
        f'#!/bin/sh\ncase "$*" in *owner/words*) sleep 60;; esac\nexec {shutil.which("git")} "$@"\n'
    )
    slow.chmod(0o755)
    arguments = ["--catalog", catalog, "--root", tmp_path / "data", "--host", host.folder]
    process = subprocess.Popen(
        [sys.executable, "-m", "train.data", "fetch", *map(str, arguments)],
        cwd=ROOT, env=os.environ | {"PATH": f"{slow.parent}:{os.environ['PATH']}", "TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    with process:
        while "words.jsonl: fetching" not in process.stderr.readline():
            pass
        os.killpg(process.pid, signal.SIGKILL)
    assert files(tmp_path / "data").keys() == {".simllm", "corpus/texts.jsonl.gz"}
    done = run()
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("texts: already there\n")
    assert (tmp_path / "data/meaning/words.jsonl").read_bytes() == PAIRS


def test_the_list_shows_licence_and_terms_and_fetches_nothing(run, tmp_path):
    done = run("--list")
    assert done.returncode == 0
    lines = [line.split("  ") for line in done.stdout.splitlines()]
    assert [[cell.strip() for cell in line if cell.strip()] for line in lines] == [
        ["name", "texts", "licence", "terms", "what"],
        ["texts", "1", "MIT", "share-alike", "a set"],
        ["words", "1", "MIT", "commercial use forbidden", "a set"],
    ]
    assert not (tmp_path / "data").exists()


def test_environment_variable_sets_the_data_folder(catalog, host, tmp_path):
    root = tmp_path / "elsewhere"
    done = fetch("words", "--catalog", catalog, "--host", host.folder, SIMLLM_DATA=str(root))
    assert done.returncode == 0, done.stderr
    assert (root / "meaning/words.jsonl").read_bytes() == PAIRS


def test_variables_of_a_surrounding_repository_have_no_effect(run, tmp_path):
    done = run(GIT_DIR=str(ROOT / ".git"), GIT_INDEX_FILE="/nowhere", GIT_OBJECT_DIRECTORY="/nowhere")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("reader: lines", "reader: liens", "reader must be one of lines, "),
        ("path: meaning/words.jsonl", "path: ../words.jsonl", "path must stay below the root"),
        ("owner/words: ", "owner/other: ", "commits must name a commit of owner/words"),
        ("owner/words: ", "owner/words: 12 # ", "commits.owner/words must be of type str, not 12"),
        ("owner/words: ", "owner/words: abc # ", "must be 40 hexadecimal digits, not abc"),
        ("about: a set", "abuot: a set", "unknown key sets[0].abuot"),
    ],
)
def test_mistakes_in_the_table_are_errors(catalog, run, old, new, problem):
    catalog.write_text(catalog.read_text().replace(old, new))
    done = run()
    assert done.returncode == 2
    assert problem in done.stderr
    assert "Traceback" not in done.stderr
