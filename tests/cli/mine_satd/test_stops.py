"""`simllm mine satd`: runs that are stopped, killed or take too long."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from simllm.code.satd_mining import mining
from tests.cli.mine_satd.repayments import mine, read, repaid
from tests.command import process
from tests.conftest import ROOT
from tests.histories import git, make_history

pytestmark = pytest.mark.slow  # many processes; the quick lane runs the documented pages


class StoppedError(Exception):
    """Exception that stops a run, as a kill does."""


@pytest.fixture
def stopped_run(rules, tmp_path, monkeypatch):
    """Start a run that is stopped after the first of two repositories; return its folder."""
    before, after = repaid("g", "FIXME: return two")
    make_history(tmp_path / "all" / "second", {"g.py": before}, {"g.py": after})
    mine_repository = mining._mine_repository

    def stop(repository, *rest):
        if repository.name == "second":
            raise StoppedError
        return mine_repository(repository, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(mining, "_mine_repository", stop)
        with pytest.raises(StoppedError):
            mine(tmp_path)
    assert not (tmp_path / "items.jsonl").exists()
    return tmp_path


def test_stopped_run_is_continued_by_the_same_command(stopped_run, monkeypatch):
    mined = []
    mine_repository = mining._mine_repository
    monkeypatch.setattr(
        mining,
        "_mine_repository",
        lambda r, *rest: mined.append(r.name) or mine_repository(r, *rest),
    )
    done = mine(stopped_run)
    assert mined == ["second"]
    assert not (stopped_run / "items.jsonl.partial").exists()
    whole = mine(stopped_run, out="whole.jsonl")
    assert (stopped_run / "items.jsonl").read_bytes() == (stopped_run / "whole.jsonl").read_bytes()
    assert len(read(stopped_run / "items.jsonl")) == 3
    assert done.stderr == whole.stderr


@pytest.mark.parametrize("change", ["commit", "repository", "removed"])
def test_run_with_other_repositories_is_not_continued(stopped_run, change):
    if change == "commit":
        make_history(stopped_run / "new", {"a.py": "1"})
        git(stopped_run / "all" / "rules", "fetch", stopped_run / "new", "+main:main")
    elif change == "repository":
        make_history(stopped_run / "all" / "a", {"a.py": "1"})
    else:
        shutil.rmtree(stopped_run / "all" / "rules")
    before = (stopped_run / "items.jsonl.partial").read_bytes()
    done = mine(stopped_run)
    assert done.returncode == 2
    assert "items.jsonl.partial: begun with other repositories or commits" in done.stderr
    assert (stopped_run / "items.jsonl.partial").read_bytes() == before


def test_output_that_appears_during_the_run_is_kept(rules, tmp_path, monkeypatch):
    mine_repository = mining._mine_repository

    def late(repository, *rest):
        (tmp_path / "items.jsonl").write_text("theirs")
        return mine_repository(repository, *rest)

    monkeypatch.setattr(mining, "_mine_repository", late)
    assert mine(tmp_path).returncode == 2
    assert (tmp_path / "items.jsonl").read_text() == "theirs"


def test_ctrl_c_says_how_to_continue(rules, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(mining, "_mine_repository", interrupt)
    done = mine(tmp_path)
    assert (done.returncode, done.stderr) == (130, "simllm: interrupted (the same command continues)\n")


GIT = """#!/bin/sh
echo "$GIT_OBJECT_DIRECTORY $*" >> "{log}"
case "$GIT_OBJECT_DIRECTORY $*" in
    */second/objects*\\ log\\ *) [ -e "{hold}" ] && exec sleep 60;;
esac
exec {git} "$@"
"""


def test_killed_run_is_resumed_to_the_same_bytes(stopped_run):
    """The process is killed at the second of two repositories, where a fake git makes it wait."""
    folder = stopped_run
    (folder / "items.jsonl.partial").unlink()
    fake = folder / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text(GIT.format(log=folder / "log", hold=folder / "hold", git=shutil.which("git")))
    fake.chmod(0o755)
    environment = {**os.environ, "PATH": f"{fake.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "simllm", "mine", "satd", "all", "-o", "items.jsonl"]
    (folder / "hold").touch()
    running = subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True)
    deadline = time.monotonic() + 60
    while not ((folder / "log").exists() and "second/objects" in (folder / "log").read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    assert (folder / "items.jsonl.partial").exists()
    assert not (folder / "items.jsonl").exists()
    (folder / "hold").unlink()
    (folder / "log").unlink()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    assert "rules/objects" not in (folder / "log").read_text()
    whole = mine(folder, out="whole.jsonl")
    assert (folder / "items.jsonl").read_bytes() == (folder / "whole.jsonl").read_bytes()
    assert done.stderr == whole.stderr
    assert not list(folder.glob("*.partial"))


def bomb(folder):
    """Make a small repository whose second commit has 12**8 files."""
    make_history(folder, {"a.py": "1"})
    tree = git(folder, "rev-parse", "HEAD^{tree}")
    for _ in range(8):
        rows = "".join(f"040000 tree {tree}\td{n}\0" for n in range(12))
        tree = git(folder, "mktree", "-z", input=rows.encode())
    commit = git(folder, "commit-tree", "-p", "HEAD", "-m", "bomb", tree)
    git(folder, "update-ref", "refs/heads/main", commit)
    return folder


def running_git(folder):
    """Return the processes of git that compare the commits of a repository."""
    mark = f"GIT_OBJECT_DIRECTORY={folder}/objects".encode()
    found = []
    for process_folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (process_folder / "cmdline").read_bytes()
            if b"diff-tree" in command and mark in (process_folder / "environ").read_bytes():
                found.append(int(process_folder.name))
    return found


def test_a_repository_that_takes_too_long_is_left_out(rules, tmp_path):
    folder = bomb(tmp_path / "all" / "bomb")
    done = process("mine", "satd", tmp_path / "all", "-o", tmp_path / "items.jsonl", "--timeout", "2")
    assert done.returncode == 0
    assert f"warning: {folder}: takes more than 2 seconds; left out" in done.stderr
    assert "simllm: 2 repositories, 1 left out\n" in done.stderr
    assert len(read(tmp_path / "items.jsonl")) == 2
    assert not running_git(folder)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
def test_git_ends_with_the_command(tmp_path, number):
    """Git is busy without output when the command is stopped; nothing stays behind."""
    folder = bomb(tmp_path / "all")
    (tmp_path / "tmp").mkdir()
    command = [
        sys.executable,
        "-m",
        "simllm",
        "mine",
        "satd",
        tmp_path / "all",
        "-o",
        tmp_path / "items.jsonl",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path / "tmp")}
    running = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not running_git(folder):
            assert time.monotonic() < deadline
            assert running.poll() is None
            time.sleep(0.01)
        running.send_signal(number)
        status = running.wait(30)
    finally:
        running.kill()
    ended = {signal.SIGINT: 130, signal.SIGKILL: -signal.SIGKILL}
    assert status == ended.get(number, 128 + number)
    while running_git(folder):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not list((tmp_path / "tmp").iterdir())
    if number != signal.SIGKILL:  # then the lock is released, but its empty file stays
        assert not list(tmp_path.glob(".*.lock"))
