"""The partial file of a long output: it can be resumed wherever it was cut off; user files are kept."""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simllm.errors import InputError
from simllm.io.partial_file import PartialFile
from simllm.io.reading import ROWS
from tests.command import run

HEAD = {"signature": "model:1", "pairs": 3}
JSON = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False) | st.text(), st.lists, max_leaves=5
)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def opened(output, resume=True):
    return PartialFile(output, HEAD, resume)


@settings(max_examples=40)
@given(st.lists(st.dictionaries(st.text(), JSON), min_size=1, max_size=5), st.data())
def test_resumes_a_file_truncated_or_damaged_anywhere(records, data):
    with tempfile.TemporaryDirectory() as folder:
        output, path = Path(folder, "scores"), Path(folder, "scores.partial")
        partial = opened(output)
        for record in records:
            partial.append(record)
        assert list(partial.records()) == records
        whole = path.read_bytes()
        place = data.draw(st.integers(whole.index(b"\n") + 1, len(whole) - 1))
        cut = data.draw(st.booleans())
        path.write_bytes(whole[:place] if cut else whole[:place] + b"\0" + whole[place + 1 :])
        partial = opened(output)
        kept = list(partial.records())
        assert kept == records[: whole[:place].count(b"\n") - 1]
        for record in records[len(kept) :]:
            partial.append(record)
        assert path.read_bytes() == whole


def test_nothing_is_written_before_the_first_record(tmp_path):
    assert list(opened(tmp_path / "scores").records()) == []
    assert names(tmp_path) == []


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize("content", ["", "notes without a line end", "two\nlines\n", '{"mine": 1}\n', "[1]"])
def test_user_file_is_kept(tmp_path, content, resume):
    (tmp_path / "scores.partial").write_text(content)
    with pytest.raises(InputError, match=r"scores\.partial: was not written by simllm; move it"):
        opened(tmp_path / "scores", resume)
    assert (tmp_path / "scores.partial").read_text() == content


def test_link_or_folder_is_kept(tmp_path):
    opened(tmp_path / "other").append({"a": 1})
    (tmp_path / "scores.partial").symlink_to("other.partial")
    with pytest.raises(InputError, match="was not written by simllm"):
        opened(tmp_path / "scores")
    (tmp_path / "scores.partial").unlink()
    (tmp_path / "scores.partial").mkdir()
    with pytest.raises(InputError, match="was not written by simllm"):
        opened(tmp_path / "scores")
    assert list(opened(tmp_path / "other").records()) == [{"a": 1}]


def test_records_are_kept_only_with_resume(tmp_path):
    opened(tmp_path / "scores").append({"a": 1})
    with pytest.raises(InputError, match="holds an earlier run; --resume continues it"):
        opened(tmp_path / "scores", resume=False)
    assert list(opened(tmp_path / "scores").records()) == [{"a": 1}]


@pytest.mark.parametrize("value", [["a"], 7, None, "text"])
def test_lines_that_are_no_objects_count_as_damaged(tmp_path, value):
    content = json.dumps(value).encode() + b"\n"
    line = b"%08x " % zlib.crc32(content) + content
    first = PartialFile(tmp_path / "out", {"a": 1}, resume=False)
    first.append({"row": 1})
    first.path.write_bytes(first.path.read_bytes() + line)
    assert list(PartialFile(tmp_path / "out", {"a": 1}, resume=True).records()) == [{"row": 1}]
    first.path.write_bytes(line)
    with pytest.raises(InputError, match="was not written by simllm"):
        PartialFile(tmp_path / "out", {"a": 1}, resume=True)


def test_file_without_records_is_started_again(tmp_path):
    opened(tmp_path / "scores").append({"a": 1})
    path = tmp_path / "scores.partial"
    path.write_bytes(path.read_bytes()[:-1])
    opened(tmp_path / "scores", resume=False).append({"b": 2})
    assert list(opened(tmp_path / "scores").records()) == [{"b": 2}]


@pytest.mark.parametrize(("key", "value"), [("signature", "model:2"), ("pairs", 4), ("pairs", None)])
def test_file_with_another_header_is_refused(tmp_path, key, value):
    opened(tmp_path / "scores").append({"a": 1})
    with pytest.raises(InputError, match=rf"scores\.partial: begun with {key} \S+, not {value}$"):
        PartialFile(tmp_path / "scores", {**HEAD, key: value}, resume=True)


@contextlib.contextmanager
def full_disk(size):
    """Simulate a full disk in a `with` block: no written file may be larger than `size` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)


@pytest.mark.parametrize("size", [5, 100, 150, 200])
def test_full_disk_leaves_complete_records(tmp_path, size):
    records = [{"text": f"text {i}"} for i in range(10)]
    partial = opened(tmp_path / "scores")

    def append_all():
        for record in records:
            partial.append(record)

    with full_disk(size), pytest.raises(InputError, match=r"scores\.partial: cannot be written \(File too"):
        append_all()
    partial = opened(tmp_path / "scores")
    kept = list(partial.records())
    for record in records[len(kept) :]:
        partial.append(record)
    assert list(partial.records()) == records
    assert names(tmp_path) == ["scores.partial"]


def test_command_keeps_a_user_file_named_like_a_partial_file(tmp_path, model_folder):
    mine = tmp_path / "scores.tsv.partial"
    mine.write_text("mine")
    done = run("score", "a", "b", "-o", tmp_path / "scores.tsv", "--model", model_folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (f"simllm: error: {mine}: was not written by simllm; move it, or name another -o\n")
    assert mine.read_text() == "mine"


CLOSED = [
    ("score a b >&-", "standard output: cannot be written (Bad file descriptor)"),
    ("score a b > /dev/full", "standard output: cannot be written (No space left on device)"),
    ("info > /dev/full", "standard output: cannot be written (No space left on device)"),
    ("score --jsonl - <&-", f"-: empty; expected {ROWS}"),
    ("score a b -o /dev/full", "/dev/full: cannot be written (No space left on device)"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("command", "message"), CLOSED)
def test_closed_or_full_output_streams(command, message):
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
