"""Hostile programs, and sandboxes whose processes are killed, leave no processes and no files behind."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.execution.processes import wait_until, with_word

pytestmark = pytest.mark.slow
NOBODY = 65534
# This program makes a socket and then expects that sending fails. Making the socket already fails.
WITHOUT_SOCKETS = {"sends to the world": ["RE"]}
PYTHON = "/usr/bin/python3"  # other users cannot reach a Python in the home of root


@pytest.fixture
def public_folder():
    """Yield a folder that every user can read, with a copy of the sandbox's code."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        package = folder / "simllm"
        package.mkdir()
        for part in ("__init__.py", "errors.py", "execution", "io"):
            source = ROOT / "simllm" / part
            (shutil.copytree if source.is_dir() else shutil.copy)(source, package / part)
        subprocess.run(["chmod", "-R", "a+rX", name], check=True)
        yield folder


def judge_hostile_programs(folder, vectors, **user):
    shutil.copy(vectors, folder / "vectors.json")
    shutil.copy(Path(__file__).with_name("hostile_judge.py"), folder / "hostile_judge.py")
    subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
    environment = {"PATH": os.environ["PATH"], "CANARY_KEY": "sk-123", "PYTHONPATH": str(folder)}
    command = [PYTHON, "-B", folder / "hostile_judge.py", folder / "vectors.json"]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, cwd="/", **user
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.parametrize("user", ["this user", "nobody"])
def test_hostile_programs(sandbox, shared, public_folder, user):
    """Hostile programs get the expected verdicts, and leave nothing behind outside of the sandbox.

    The fixture `sandbox` tries some attacks first. If one of them succeeds, no hostile program is run.
    """
    ids = {}
    if user == "nobody":
        if os.getuid() != 0:
            pytest.skip("only root can become another user")
        ids = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    vectors = shared / "reference" / "repair_containment.json"
    system = {path: path.stat().st_mtime_ns for path in (Path("/etc"), Path("/usr"), Path("/usr/share/doc"))}
    before = set(Path("/tmp").iterdir())
    results = judge_hostile_programs(public_folder, vectors, **ids)
    assert results["uid"] == ids.get("user", os.getuid())
    assert results["visitor"] is None
    cases = {case["name"]: case for case in json.loads(vectors.read_text())["hostile"]}
    assert len(cases) == 19
    for name, case in cases.items():
        result = results["cases"][name]
        expected = WITHOUT_SOCKETS.get(name, case["verdicts"])
        assert result["verdict"] in expected, (name, result)
        assert result["left"] == {}, (name, result)
        assert result["beside"] == "AC", (name, result)
        assert result["seconds"] < 25, (name, result)
        assert result["kept"] <= 1 << 24, (name, result)
        assert "root:" not in result["log"], (name, result)
    assert results["cases"]["searches for the expected output"]["output"] == ["none\n"]
    assert results["cases"]["endless output"]["seconds"] < 2
    assert system == {path: path.stat().st_mtime_ns for path in system}
    new = [path for path in set(Path("/tmp").iterdir()) - before if path.exists()]
    assert not [path for path in new if path.lstat().st_uid >= 60_000]  # the users that run programs for root


JUDGE = """
import sys
from simllm.execution import Limits, Sandbox
code = '''
import os, time
for _ in range(20):
    if os.fork() == 0:
        os.setsid()
        break
time.sleep(60)
'''
with Sandbox() as sandbox:
    print(flush=True)
    while True:
        sandbox.run(["python3", "-S", "-c", code, sys.argv[1]], limits=Limits(time=0.1, memory=128))
"""


@pytest.mark.parametrize("killed", ["caller", "supervisor", "bwrap", "caller and supervisor"])
def test_a_killed_judge_leaves_nothing_behind(sandbox, killed, request):
    """The process that uses the sandbox, or processes of the sandbox, are killed at random moments."""
    draw = random.Random(0)
    before = set(Path("/tmp").glob("simllm-*"))
    for number in range(5):
        word = f"marker-{os.getpid()}-{killed.replace(' ', '-')}-{number}"
        caller = subprocess.Popen(
            [sys.executable, "-c", JUDGE, word], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
        )
        request.addfinalizer(caller.kill)
        caller.stdout.readline()
        time.sleep(draw.uniform(0, 0.1) if number % 2 else draw.uniform(0.1, 2))
        supervisors = [int(pid) for pid in children(caller.pid)]
        victims = {
            "caller": [caller.pid],
            "supervisor": supervisors,
            "bwrap": [int(pid) for supervisor in supervisors for pid in children(supervisor)],
            "caller and supervisor": [caller.pid, *supervisors],
        }[killed]
        for victim in victims:
            os.kill(victim, signal.SIGKILL)
        if killed != "bwrap" or victims:
            assert caller.wait(timeout=30) != 0
            assert wait_until(lambda pids=supervisors: not any(map(runs, pids)), 5)
        caller.kill()
        caller.wait()
        assert wait_until(lambda word=word: not with_word(word), 5), with_word(word)
    assert set(Path("/tmp").glob("simllm-*")) <= before


FORKED = JUDGE.replace(
    "with Sandbox() as sandbox:\n",
    """with Sandbox() as sandbox:
    import os, threading, time
    run = lambda: sandbox.run(["sleep", "50"], limits=Limits(time=20))
    threading.Thread(target=run, daemon=True).start()
    time.sleep(1)
    if os.fork() == 0:
        time.sleep(30)
        os._exit(0)
""",
)


def test_a_child_of_the_judge_does_not_keep_the_sandbox_alive(sandbox, request):
    """A forked process holds the pipes to the supervisor open, so that these do not show the judge's end."""
    word = f"marker-{os.getpid()}-forked"
    caller = subprocess.Popen(
        [sys.executable, "-c", FORKED, word], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    )
    request.addfinalizer(caller.kill)
    caller.stdout.readline()
    assert wait_until(lambda: len(children(caller.pid)) >= 3)  # two supervisors and the forked process
    forked = [int(pid) for pid in children(caller.pid) if b"supervisor" not in command_line(pid)]
    supervisors = [int(pid) for pid in children(caller.pid) if b"supervisor" in command_line(pid)]
    request.addfinalizer(lambda: [os.kill(pid, signal.SIGKILL) for pid in forked if runs(pid)])
    os.kill(caller.pid, signal.SIGKILL)
    caller.wait()
    assert wait_until(lambda: not any(map(runs, supervisors)), 5)
    assert any(map(runs, forked))


def command_line(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def children(pid):
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def runs(pid):
    """Return whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
