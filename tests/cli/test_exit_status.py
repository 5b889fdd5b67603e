"""Ends of the command: signals, errors of the operating system, warnings, and what a terminal would obey."""

import os
import signal
import subprocess
import sys
import warnings

import pytest

from simllm.cli import main
from tests.command import process, run

ESCAPE = "\x1b]0;title\x07"


def start(*arguments, **options):
    command = [sys.executable, "-X", "importtime", "-m", "simllm", *arguments]
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen(command, text=True, **options)


def wait_for(running, name):
    """Read the import times on standard error until a module is imported."""
    lines = iter(running.stderr.readline, "")
    assert any(line.rstrip().endswith(f"| {name}") or line.rstrip().endswith(f" {name}") for line in lines)


@pytest.mark.parametrize(
    ("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
@pytest.mark.parametrize("module", ["argparse", "numpy"])  # of the command line, of the work
def test_signals_during_imports_give_one_line(sent, status, module):
    running = start("score", "adds it", "sums it")
    wait_for(running, module)
    running.send_signal(sent)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == status
    assert [line for line in errors.splitlines() if not line.startswith("import time:")] == [
        "simllm: interrupted"
    ]


@pytest.mark.slow
def test_a_signal_that_is_ignored_stays_ignored(tmp_path):
    """A command under nohup goes on when its terminal is closed."""
    ignore = "signal.signal(signal.SIGHUP, signal.SIG_IGN)"
    code = f"import signal, os, sys; {ignore}; os.execv(sys.argv[1], sys.argv[1:])"
    command = [sys.executable, "-X", "importtime", "-m", "simllm", "score", "a", "a"]
    command = [sys.executable, "-c", code, *command]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(running, "argparse")
    running.send_signal(signal.SIGHUP)
    out, _ = running.communicate(timeout=120)
    assert running.returncode == 0
    assert out.endswith("1\t1\ta\ta\n")


def test_a_terminated_run_leaves_no_temporary_files(tmp_path):
    os.mkfifo(tmp_path / "pairs.jsonl")
    # Without import times on standard error: nobody reads the pipe while the command waits for the file.
    words = ["score", "--jsonl", "pairs.jsonl", "--metrics", "jaccard", "-o", "out.tsv"]
    running = subprocess.Popen([sys.executable, "-m", "simllm", *words], cwd=tmp_path, stderr=subprocess.PIPE)
    with (tmp_path / "pairs.jsonl").open("w"):
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=60)
    assert running.returncode == 143
    assert [file.name for file in tmp_path.iterdir()] == ["pairs.jsonl"]


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_errors_of_standard_output_are_told(unbuffered):
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = process("score", "a", "a", "--metrics", "jaccard", stdout=full, stderr=subprocess.PIPE,
                       capture_output=False, env=environment)  # fmt: skip
    line = "simllm: error: standard output: cannot be written (No space left on device)\n"
    assert (done.returncode, done.stderr) == (2, line)
    reader, writer = os.pipe()
    os.close(reader)
    done = process("score", "a", "a", "--metrics", "jaccard", "-q", stdout=writer, stderr=subprocess.PIPE,
                   capture_output=False, env=environment)  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            FileNotFoundError(2, "No such file or directory", "some/file"),
            "some/file: No such file or directory",
        ),
        (OSError(24, "Too many open files"), "Too many open files"),
        (BrokenPipeError(32, "Broken pipe"), "Broken pipe"),
        (OSError("odd"), "odd"),
        (PermissionError(13, "Permission denied", f"a{ESCAPE}"), "a ]0;title : Permission denied"),
    ],
)
def test_other_errors_of_the_system_are_told_as_what_they_are(monkeypatch, error, message):
    from simllm.cli import info

    def fail(options):
        raise error

    monkeypatch.setattr(info, "run", fail)
    done = run("info")
    assert (done.returncode, done.stderr) == (2, f"simllm: error: {message}\n")


def test_a_removed_working_folder_is_one_line(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    command = f"rmdir ../gone; exec {sys.executable} -m simllm score a b --metrics jaccard"
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}  # noqa: PTH109
    done = subprocess.run(
        command, shell=True, cwd=gone, capture_output=True, text=True, env=environment, check=False
    )
    line = "simllm: error: the working folder cannot be read (No such file or directory)\n"
    assert (done.returncode, done.stderr) == (2, line)


@pytest.mark.slow
def test_warnings_as_errors_do_not_end_the_command(model_folder):
    done = process("score", "ключ", "key", "-f", "json", "--model", model_folder,
                   env={**os.environ, "PYTHONWARNINGS": "error"})  # fmt: skip
    assert done.returncode == 0
    assert done.stderr.startswith("simllm: warning: 1 of 1 pairs have a text that is empty after cleaning")


def test_warnings_and_errors_are_one_printable_line_each(monkeypatch, tmp_path):
    from simllm.cli import info

    def warn(options):
        for _ in range(2):
            warnings.warn(f"odd {ESCAPE}\nname\u202e", stacklevel=1)
        warnings.warn("x" * 5000, stacklevel=1)

    monkeypatch.setattr(info, "run", warn)
    first, second = run("info").stderr.splitlines()
    assert first == "simllm: warning: odd ]0;title name"
    assert len(second) == len("simllm: ") + main._LONGEST_MESSAGE
    done = run("score", "-c", tmp_path / f"x{ESCAPE}", "-r", tmp_path / "y")
    assert done.returncode == 2
    assert "\x1b" not in done.stderr
    done = run("score", "a", "b", f"--metric{ESCAPE}", "x")  # the message of argparse
    assert done.returncode == 2
    assert "\x1b" not in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("score", "a", "b", "--metrics=--"),
        ("score", "a", "b", "-f--"),
        ("evaluate", "robustness", "--seed=--"),
        ("compare", "-r", "a", "--candidates=--"),
    ],
)
def test_two_hyphens_are_no_value_of_an_option(arguments):
    done = run(*arguments)
    assert done.returncode == 2
    assert ": expected a value, not -- (see simllm" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_entry_point_imports_little():
    """Signals are handled before the slow imports."""
    code = "import sys, simllm.__main__; print([name for name in sys.modules if name.startswith('simllm')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['simllm', 'simllm.__main__']\n"
