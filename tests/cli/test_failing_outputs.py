"""Commands that cannot write or are stopped: one line, the right status, and nothing half-written."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.command import run

SIMLLM = [sys.executable, "-m", "simllm"]
ROWS = '{"id": "1", "language": "python", "source": "def f(a): return a"}\n'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "items.jsonl").write_text(ROWS)
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "a.py").write_text("def f(a): return a\n")
    (tmp_path / "labels.csv").write_text("item,gold,predicted\n1,a,a\n2,b,b\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*words, **options):
    return subprocess.run(
        [*SIMLLM, *words],
        capture_output="stdout" not in options,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


def names(folder):
    return sorted(path.name for path in folder.rglob("*"))


def open_when_read(pipe):
    """Wait until a process reads from a named pipe, and open its other end; without it, the process waits."""
    deadline = time.monotonic() + 120
    while True:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "status"),
    # Shells show 130 for both ends by Ctrl+C: Python chooses the second if it was importing a module.
    [(signal.SIGINT, (130, -2)), (signal.SIGTERM, (143,)), (signal.SIGHUP, (129,))],
)
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_stopped_command_leaves_no_temporary_files_and_no_locks(folder, number, status, kind):
    os.mkfifo("pipe")
    words = ["--jsonl", "pipe"]
    if kind == "folder":
        words = ["code", "--prove", "sh -c 'cat pipe {dir}'"]
    before = names(folder)
    running = subprocess.Popen(
        [*SIMLLM, "perturb", "code", *words, "-o", "out"], stderr=subprocess.PIPE, text=True
    )
    end = open_when_read("pipe")
    running.send_signal(number)
    _, errors = running.communicate(timeout=120)
    os.close(end)
    assert running.returncode in status
    assert errors == "simllm: interrupted\n"
    assert names(folder) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["split", "labels.csv", "-o", "out"],
        ["perturb", "code", "--jsonl", "items.jsonl", "-o", "out"],
        ["perturb", "code", "code", "-o", "out"],
        ["evaluate", "classifiers", "labels.csv", "--positive", "a", "--out", "out"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_full_disk_gives_one_line_and_leaves_nothing(folder, words):
    before = names(folder)

    def limit():  # files may have no content, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = call(*words, preexec_fn=limit, env=environment)
    assert done.returncode == 2
    errors = [line for line in done.stderr.splitlines() if "warning" not in line]
    assert len(errors) == 1
    assert "cannot be written (File too large)" in errors[0]
    assert names(folder) == before


def test_a_removed_current_folder_gives_one_line(folder):
    (folder / "gone").mkdir()
    script = f"rmdir ../gone; exec {' '.join(SIMLLM)} score 'a b' 'b c'"
    done = subprocess.run(
        script, shell=True, cwd=folder / "gone", capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == ("simllm: error: the working folder cannot be read (No such file or directory)\n")


@pytest.mark.parametrize("name", ["n" * 255, "名" * 85], ids=["ASCII", "three bytes a character"])
def test_the_longest_file_name_is_written(folder, name):
    for _ in range(2):
        done = run("split", "labels.csv", "-o", name, "--overwrite")
        assert done.returncode == 0, done.stderr
    assert sorted(names(folder)) == sorted([name, "a.py", "code", "items.jsonl", "labels.csv"])
    done = run("split", "labels.csv", "-o", name + "n")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "File name too long" in done.stderr


@pytest.mark.parametrize("words", [["perturb", "code", "--jsonl", "items.jsonl"], ["--help"]], ids=" ".join)
def test_output_that_cannot_be_written_gives_one_line(folder, words):
    closed = call(*words, stdout=None, stderr=subprocess.PIPE, preexec_fn=lambda: os.close(1))
    assert closed.returncode == 2
    assert closed.stderr == "simllm: error: standard output: cannot be written (Bad file descriptor)\n"
    with Path("/dev/full").open("w") as full:
        done = call(*words, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr == "simllm: error: standard output: cannot be written (No space left on device)\n"


def test_devices_and_pipes(folder):
    done = run("split", "labels.csv", "-o", "/dev/full", "-q")
    assert (done.returncode, done.stderr) == (
        2, "simllm: error: /dev/full: cannot be written (No space left on device)\n"
    )  # fmt: skip
    shown, written = run("split", "labels.csv"), call("split", "labels.csv", "-o", "/dev/stdout")
    assert (written.returncode, written.stdout) == (0, shown.stdout)
    (folder / "log").write_text("old\n")
    with (folder / "log").open("a") as log:
        appended = call("split", "labels.csv", "-o", "/dev/stdout", stdout=log, stderr=subprocess.PIPE)
    assert appended.returncode == 2
    assert (folder / "log").read_text() == "old\n"
    assert names(folder) == sorted(["a.py", "code", "items.jsonl", "labels.csv", "log"])
