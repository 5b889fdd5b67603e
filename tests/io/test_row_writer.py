"""Long tables: no file of the user's is lost, and what was written stays valid."""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys

import pytest

from simllm.errors import InputError
from simllm.io import files, resume
from simllm.io.row_writer import Rows
from tests.command import process, run

MEASURE = {"scale": "raw", "signature": "model:1"}
COLUMNS = ("score", "candidate")


def write(output, chunks=(), format_="tsv", skip=0, skipped=()):
    with Rows(COLUMNS, format_, output, skip) as rows:
        rows.begin(MEASURE, skipped)
        for chunk in chunks:
            rows.write(chunk)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def stopped(*chunks):
    """Yield chunks, and then stop the run that reads them."""
    yield from chunks
    raise EOFError


@pytest.mark.parametrize("format_", ["tsv", "json", "text"])
@pytest.mark.parametrize("name", ["scores.partial", "scores.partial.json"])
@pytest.mark.parametrize("content", ["", "notes without a line end", "two\nlines\n", '{"mine": 1}', "[1]"])
def test_a_file_of_the_user_under_our_temporary_name_stays(tmp_path, format_, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=f"{name}: is in the way, and not of simllm"):
        write(tmp_path / "scores", [[(0.5, "a")]], format_=format_)
    with pytest.raises(InputError):
        write(tmp_path / "scores", [[(0.5, "a")]], skip=1, skipped=[["a"]])
    assert names(tmp_path) == [name]
    assert (tmp_path / name).read_text() == content


def test_a_link_or_a_folder_under_our_temporary_name_stays(tmp_path):
    (tmp_path / "thesis").write_text("years of work")
    (tmp_path / "scores.partial").symlink_to("thesis")
    (tmp_path / "scores.partial.json").write_text(json.dumps(MEASURE))
    with pytest.raises(InputError, match=r"scores\.partial: is in the way"):
        write(tmp_path / "scores", [[(0.5, "a")]])
    (tmp_path / "scores.partial").unlink()
    (tmp_path / "scores.partial").mkdir()
    with pytest.raises(InputError, match=r"scores\.partial: is in the way"):
        write(tmp_path / "scores", [[(0.5, "a")]])
    assert (tmp_path / "thesis").read_text() == "years of work"


def test_a_file_that_appears_during_the_run_stays(tmp_path):
    def chunks():
        (tmp_path / "scores.partial").write_text("mine")
        yield [(0.5, "a")]

    with pytest.raises(InputError, match=r"scores: cannot be written \(File exists\)"):
        write(tmp_path / "scores", chunks())
    assert names(tmp_path) == ["scores.partial"]
    assert (tmp_path / "scores.partial").read_text() == "mine"


@pytest.mark.parametrize("before", [None, "before"])
def test_an_output_that_changes_during_the_run_is_not_replaced(tmp_path, before):
    def chunks():
        yield [(0.5, "a")]
        (tmp_path / "scores").write_text("somebody else's")

    if before:
        (tmp_path / "scores").write_text(before)
    with pytest.raises(InputError, match=r"changed by something else meanwhile; .* --skip 1 goes on"):
        write(tmp_path / "scores", chunks())
    assert (tmp_path / "scores").read_text() == "somebody else's"
    assert (tmp_path / "scores.partial").read_text() == "score\tcandidate\n0.5\ta\n"
    write(tmp_path / "scores", skip=1, skipped=[["a"]])
    assert (tmp_path / "scores").read_text() == "score\tcandidate\n0.5\ta\n"
    assert names(tmp_path) == ["scores"]


def test_our_own_partial_file_without_rows_is_begun_anew(tmp_path):
    (tmp_path / "scores.partial.json").write_text(json.dumps(MEASURE))
    (tmp_path / "scores.partial").write_text("score\tcandidate\n0.")  # a kill cut the first row
    write(tmp_path / "scores", [[(0.5, "a")]])
    assert (tmp_path / "scores").read_text() == "score\tcandidate\n0.5\ta\n"
    assert names(tmp_path) == ["scores"]


def test_two_processes_do_not_write_one_table(tmp_path):
    with Rows(COLUMNS, "tsv", tmp_path / "scores", 0) as rows:
        rows.begin(MEASURE, [])
        rows.write([(0.5, "a")])
        for skip in (0, 1):
            done = process("score", "a", "b", "-f", "tsv", "-o", tmp_path / "scores", "--skip", skip)
            assert done.returncode == 2
            assert done.stderr == (
                f"simllm: error: {tmp_path / 'scores'}: another process is writing there\n"
            )
        rows.write([(0.25, "b")])
    assert (tmp_path / "scores").read_text() == "score\tcandidate\n0.5\ta\n0.25\tb\n"
    assert names(tmp_path) == ["scores"]


@pytest.mark.parametrize("format_", ["tsv", "json"])
def test_an_error_leaves_whole_rows(tmp_path, format_):
    with pytest.raises(EOFError):
        write(tmp_path / "scores", stopped([(0.5, "a")], [(0.25, "b")]), format_=format_)
    left = (tmp_path / "scores.partial").read_text()
    if format_ == "tsv":
        assert left == "score\tcandidate\n0.5\ta\n0.25\tb\n"
    else:
        assert [row["score"] for row in json.loads(left)["rows"]] == [0.5, 0.25]
    assert names(tmp_path) == ["scores.partial", "scores.partial.json"]


def test_an_error_before_the_first_row_leaves_nothing(tmp_path):
    with pytest.raises(EOFError):
        write(tmp_path / "scores", stopped())
    assert names(tmp_path) == []


def test_the_permissions_of_a_replaced_table_are_kept(tmp_path):
    (tmp_path / "scores").write_text("")
    (tmp_path / "scores").chmod(0o600)
    with Rows(COLUMNS, "tsv", tmp_path / "scores", 0) as rows:
        rows.begin(MEASURE, [])
        rows.write([(0.5, "a")])
        assert (tmp_path / "scores.partial").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "scores").stat().st_mode & 0o777 == 0o600


@contextlib.contextmanager
def full_disk(size):
    """Limit the size of files, as a full disk does; only here, as pytest may write to a file, too."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)


@pytest.mark.parametrize("size", [100, 102, 110, 190])
def test_a_full_disk_leaves_whole_rows_and_the_run_goes_on_later(tmp_path, size):
    rows = [(i / 100, f"text {i}") for i in range(10, 40)]
    chunks = [rows[i : i + 3] for i in range(0, 30, 3)]
    stopped = r"cannot be written \(File too large\); stopped after \d+ pairs"
    with full_disk(size), pytest.raises(InputError, match=stopped):
        write(tmp_path / "scores", chunks)
    left = (tmp_path / "scores.partial").read_text()
    done = left.count("\n") - 1
    assert left.endswith("\n")
    assert done % 3 == 0
    write(tmp_path / "scores", [rows[done:]], skip=done, skipped=[[text] for _, text in rows[:done][-16:]])
    assert [line.split("\t")[1] for line in (tmp_path / "scores").read_text().splitlines()[1:]] == [
        text for _, text in rows
    ]


def test_a_full_disk_leaves_valid_json(tmp_path):
    with full_disk(150), pytest.raises(InputError, match="File too large"):
        write(tmp_path / "scores", [[(0.5, "text")]] * 30, format_="json")
    found = json.loads((tmp_path / "scores.partial").read_text())
    assert found["interrupted"]
    assert len(found["rows"]) == 3


def test_a_disk_that_is_full_at_once_leaves_nothing(tmp_path):
    with full_disk(5), pytest.raises(InputError, match=r"cannot be written \(File too large\)$"):
        write(tmp_path / "scores", [[(0.5, "a")]])
    assert names(tmp_path) == []


def test_a_note_tells_whose_the_partial_file_is(tmp_path):
    resume.begin(tmp_path / "scores.partial", MEASURE)
    resume.refuse(tmp_path / "scores.partial", None)
    (tmp_path / "scores.partial.json").write_text(json.dumps({**MEASURE, "more": "x"}))
    with pytest.raises(InputError, match="not of simllm"):
        resume.refuse(tmp_path / "scores.partial", None)


def test_the_command_keeps_a_partial_file_of_the_user(tmp_path):
    mine = tmp_path / "scores.tsv.partial"
    mine.write_text("mine")
    done = run("score", "a", "b", "-o", tmp_path / "scores.tsv")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"simllm: error: {mine}: is in the way, and not of simllm; move it, or name another -o\n"
    )
    assert mine.read_text() == "mine"


def test_an_output_that_another_run_has_just_finished_stays(tmp_path, model_folder, monkeypatch):
    out, locked = tmp_path / "scores.tsv", files.locked

    @contextlib.contextmanager
    def late(path):
        out.write_text("theirs")
        with locked(path):
            yield

    monkeypatch.setattr(files, "locked", late)
    done = run("score", "a", "b", "-o", out, "--model", model_folder)
    assert done.returncode == 2
    assert "scores.tsv: exists already" in done.stderr
    assert out.read_text() == "theirs"
    assert names(tmp_path) == ["scores.tsv"]


CLOSED = [
    ("score a b >&-", "standard output: cannot be written (Bad file descriptor)"),
    ("score a b > /dev/full", "standard output: cannot be written (No space left on device)"),
    ("info > /dev/full", "standard output: cannot be written (No space left on device)"),
    ("score --jsonl - <&-", "-: empty; expected a JSON object a line"),
    ("score a b -o /dev/full", "/dev/full: cannot be written (No space left on device)"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("command", "message"), CLOSED)
def test_closed_and_full_streams(command, message):
    words = f"{sys.executable} -m simllm {command}"
    done = subprocess.run(words, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"simllm: error: {message}\n"


@pytest.mark.slow
def test_closed_standard_error_does_not_reach_the_output(tmp_path):
    words = f"exec {sys.executable} -m simllm score a b --pooling sum 2>&-"
    done = subprocess.run(words, shell=True, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")
    assert os.listdir(tmp_path) == []  # noqa: PTH208
