"""Runs of commands in the sandbox: files, streams, limits, and errors."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from simllm.cli.repair import sandbox as sandbox_command
from simllm.errors import InputError
from simllm.execution import Limits, Sandbox, SandboxError
from simllm.execution import sandbox as sandbox_module
from tests.command import process, run
from tests.execution.processes import wait_until, with_word

SHORT = Limits(time=1, memory=64)

# Memory that is not resident: unread data in pairs of sockets, and page tables of pages that were only read.
SOCKETS = """
import os, socket, time
for _ in range(3): os.fork()
pairs = []
try:
    while True:
        pairs.append(socket.socketpair())
        pairs[-1][0].setblocking(False)
        pairs[-1][0].send(bytes(100_000))
except OSError: time.sleep(60)
"""
PAGE_TABLES = """
import mmap, os, time
for _ in range(5): os.fork()
pages = mmap.mmap(-1, 3 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
for n in range(0, 3 << 30, 1 << 21): pages[n]
time.sleep(60)
"""


def python(sandbox, code, **options):
    return sandbox.run(["python3", "-S", "-c", code], **{"limits": SHORT, **options})


def test_streams_and_status(sandbox):
    code = "import sys; print(sys.stdin.read()); print('e', file=sys.stderr); sys.exit(7)"
    outcome = python(sandbox, code, stdin=b"caf\xc3\xa9\x00")
    assert (outcome.status, outcome.exceeded, outcome.succeeded) == (7, None, False)
    assert (outcome.stdout, outcome.stderr) == (b"caf\xc3\xa9\x00\n", b"e\n")


def test_files_pass_from_one_run_to_the_next(sandbox):
    files = {"a/b/text": b"1", "run": b"#!/bin/sh\ncat a/b/text > a/copy; echo 2 > other; pwd"}
    first = sandbox.run(["./run"], files, keep=["a/*"])
    assert first.stdout == b"/box\n"
    assert first.files == {"a/b/text": b"1", "a/copy": b"1"}
    second = sandbox.run(["ls", "a", "."], first.files, keep=["*"])
    assert second.stdout == b".:\na\n\na:\nb\ncopy\n"
    assert second.files == first.files


def test_kept_files_are_regular_files_inside_the_folder(sandbox):
    code = """
import os
os.symlink("/etc", "folder"); os.symlink("real", "link"); os.mkfifo("pipe"); os.mkdir("closed")
open("real", "w").write("x"); open("unreadable", "w").close()
os.chmod("unreadable", 0); os.chmod("closed", 0)
os.truncate(os.open("holes", os.O_CREAT | os.O_WRONLY), 60_000_000); os.makedirs("/".join("d" * 200))
open("\\udcff", "w").close()
"""
    kept = sandbox.run(["python3", "-c", code], keep=["*"]).files
    assert {name: len(content) for name, content in kept.items()} == {
        "real": 1,
        "holes": 60_000_000,
        "\udcff": 0,
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "exceeded"),
    [
        ("while True: pass", "time"),
        ("import os\nfor _ in range(3): os.fork()\nwhile True: pass", "time"),
        ("import time; time.sleep(60)", "time"),
        ("x = b'x' * (1 << 28)", "memory"),
        ("import os\nfor _ in range(3): os.fork()\nx = b'x' * (30 << 20)\nwhile True: pass", "memory"),
        ("import os\nfor n in range(10**6): os.close(os.open(str(n), os.O_CREAT))", "memory"),
        (SOCKETS, "memory"),
        (PAGE_TABLES, "memory"),
        ("while True: print('x' * 1000)", "output"),
        ("import sys\nwhile True: sys.stderr.write('x' * 1000)", "output"),
    ],
)
def test_limits(sandbox, code, exceeded):
    limits = Limits(time=2 if exceeded == "memory" else 0.3, memory=64, output=100_000)
    outcome = python(sandbox, code, limits=limits)
    assert outcome.exceeded == exceeded
    assert outcome.wall_seconds < limits.wall_time + 1
    assert len(outcome.stdout) <= 100_000
    assert len(outcome.stderr) <= 100_000


@pytest.mark.slow
@pytest.mark.parametrize("flags", ["MAP_SHARED", "MAP_SHARED | MAP_ANONYMOUS", "MAP_PRIVATE | 0x40020"])
def test_memory_that_is_not_resident_is_refused(sandbox, flags):
    """Shared pages stay allocated after madvise(MADV_DONTNEED), and huge pages count nowhere."""
    code = f"""
from mmap import *
try: mmap(-1, 1 << 21, flags={flags})
except OSError as error: print(error.errno)
zero = open("/dev/zero", "r+b")
try: mmap(zero.fileno(), 4096)
except OSError as error: print(error.errno)
print(open("/dev/zero", "rb").read(3))
"""
    assert python(sandbox, code).stdout == b"1\n19\nb'\\x00\\x00\\x00'\n"


def test_no_family_of_sockets_but_pairs_of_unix_sockets(sandbox):
    code = """
import socket
def socket_family(made): return int((made[0] if isinstance(made, tuple) else made).family)
for family in range(64):
    for kind in range(1, 7):
        for make in (socket.socket, socket.socketpair):
            try: print(make.__name__, socket_family(make(family, kind)))
            except OSError as error: assert error.errno == 97 or family == 1, (family, error)
print(len(socket.socketpair()))
"""
    outcome = python(sandbox, code)
    assert (set(outcome.stdout.splitlines()), outcome.stderr) == ({b"socketpair 1", b"2"}, b"")


def test_no_program_reaches_into_another_process(sandbox):
    """The first process of a sandbox has no limits, and holds the output of the run."""
    code = """
import ctypes, os, resource, subprocess
libc = ctypes.CDLL(None, use_errno=True)
child = subprocess.Popen(["sleep", "9"])
for pid in (1, child.pid):
    print(len(os.listdir(f"/proc/{pid}/fd")) if os.path.exists(f"/proc/{pid}/fd") else "no files")
    print(libc.ptrace(0x4206, pid, 0, 0), ctypes.get_errno())
    print(libc.syscall(438, os.pidfd_open(pid), 1, 0), ctypes.get_errno())
    try: resource.prlimit(pid, resource.RLIMIT_CORE)
    except OSError as error: print(error.errno)
child.kill()
print(resource.prlimit(0, resource.RLIMIT_CORE))
"""
    refused = b"-1 38\n-1 38\n1\n"
    assert python(sandbox, code).stdout == b"no files\n" + refused + b"3\n" + refused + b"(0, 0)\n"


@pytest.mark.slow
def test_ordinary_programs_need_nothing_that_is_refused(sandbox):
    code = """
import asyncio, multiprocessing, shutil, sqlite3, subprocess, tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.shared_memory import SharedMemory
async def later(): return await asyncio.sleep(0, 1)
def square(n): return n * n
if __name__ == "__main__":
    assert asyncio.run(later()) == 1
    with multiprocessing.Pool(2) as pool: assert pool.map(square, [2, 3]) == [4, 9]
    with ProcessPoolExecutor(2) as pool: assert list(pool.map(square, [2])) == [4]
    queue, value, (a, b) = multiprocessing.Queue(), multiprocessing.Value("i", 5), multiprocessing.Pipe()
    process = multiprocessing.Process(target=queue.put, args=(6,))
    process.start(); assert queue.get() == 6; process.join()
    a.send(7); assert b.recv() == 7
    memory = SharedMemory(create=True, size=100); memory.close(); memory.unlink()
    open("x", "w").write("y" * 99_999); shutil.copy("x", "z"); assert len(open("z").read()) == 99_999
    sqlite3.connect("db").execute("create table t (n)")
    assert subprocess.run(["sort"], input=b"b\\na\\n", capture_output=True).stdout == b"a\\nb\\n"
    print(len(str(9 ** 9999)))
"""
    outcome = sandbox.run(["python3", "main.py"], {"main.py": code.encode()})
    assert (outcome.stdout, outcome.stderr) == (b"9542\n", b"")


@pytest.mark.slow
@pytest.mark.parametrize("code", ["pass", "os.setsid()", "signal.signal(signal.SIGTERM, signal.SIG_IGN)"])
def test_processes_without_end_are_gone_soon_after_the_limit(sandbox, code):
    word = f"bomb-{os.getpid()}"
    code = f"import os, signal\nwhile True:\n try:\n  os.fork()\n  {code}\n except OSError: pass"
    begun = time.monotonic()
    outcome = sandbox.run(["python3", "-S", "-c", code, word], limits=Limits(time=0.5, memory=512))
    assert outcome.exceeded == "time"
    assert not with_word(word)
    assert time.monotonic() - begun < 2 * 0.5 + 1 + 2


def test_output_up_to_the_limit_is_allowed(sandbox):
    outcome = python(sandbox, "print('x' * 999)", limits=Limits(time=1, memory=64, output=1000))
    assert (outcome.exceeded, len(outcome.stdout)) == (None, 1000)


def test_time_and_memory_are_measured(sandbox):
    code = "import time\nx = b'x' * (100 << 20)\nwhile time.process_time() < 0.3: pass\ntime.sleep(0.3)"
    begun = time.monotonic()
    outcome = python(sandbox, code, limits=Limits(time=2, memory=200))
    assert outcome.exceeded is None
    assert outcome.cpu_seconds == pytest.approx(0.3, abs=0.1)
    assert 0.6 < outcome.wall_seconds < time.monotonic() - begun
    assert outcome.peak_memory >> 20 == pytest.approx(108, abs=6)


def test_time_and_memory_of_children_are_measured(sandbox):
    code = """
import os, time
if os.fork() == 0:
    x = b'x' * (50 << 20)
    while time.process_time() < 0.2: pass
else:
    os.wait()
"""
    outcome = python(sandbox, code, limits=Limits(time=2, memory=200))
    assert outcome.cpu_seconds == pytest.approx(0.2, abs=0.1)
    assert outcome.peak_memory > 50 << 20


@pytest.mark.parametrize(
    ("argv", "status"), [(["false"], 1), (["no-such-program"], 127), (["sh", "-c", "kill -11 $$"], 139)]
)
def test_status(sandbox, argv, status):
    assert sandbox.run(argv, limits=SHORT).status == status


def test_environment_is_clean(sandbox):
    variables = dict(line.split("=", 1) for line in sandbox.run(["env"]).stdout.decode().splitlines())
    assert set(variables) - {"OLDPWD", "PWD"} == {
        *("PATH", "HOME", "LANG", "PYTHONHASHSEED", "PYTHONINTMAXSTRDIGITS", "OMP_NUM_THREADS")
    }


@pytest.mark.usefixtures("sandbox")
def test_more_paths_can_be_readable(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "text").write_text("x")
    for path in (folder, *folder.parents[:-2]):
        path.chmod(0o755)  # the folders of pytest are closed to other users
    with Sandbox(readable=[folder, Path("/opt")]) as sandbox:
        outcome = sandbox.run(["sh", "-c", f"cat {folder}/text; echo y > {folder}/text"])
    assert outcome.stdout == b"x"
    assert outcome.status != 0
    assert (folder / "text").read_text() == "x"
    with pytest.raises(InputError, match="none: does not exist"):
        Sandbox(readable=[tmp_path / "none"])


@pytest.mark.slow
def test_runs_are_parallel(sandbox):
    def one(number):
        return python(sandbox, "import time; time.sleep(0.5); print(input())", stdin=b"%d" % number)

    begun = time.monotonic()
    with ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(one, range(8)))
    assert [outcome.stdout for outcome in outcomes] == [b"%d\n" % number for number in range(8)]
    # One after another, the runs would take at least the sum of their times.
    assert time.monotonic() - begun < 0.7 * sum(outcome.wall_seconds for outcome in outcomes)


@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x", "", ".", "a\0b"])
def test_rejects_files_outside_the_folder(sandbox, name):
    with pytest.raises(InputError, match="expected a path inside the working folder"):
        sandbox.run(["true"], {name: b""})


@pytest.mark.parametrize(
    "limits", [{"time": 0}, {"memory": -1}, {"time": float("inf")}, {"output": float("nan")}]
)
def test_rejects_limits_that_are_none(limits):
    with pytest.raises(InputError, match=f"limit {next(iter(limits))}: expected a positive number"):
        Limits(**limits)


def test_files_that_do_not_fit(sandbox):
    with pytest.raises(SandboxError, match="the files do not fit into 1 MiB"):
        sandbox.run(["true"], {"large": bytes(2 << 20)}, limits=Limits(disk=1))
    assert sandbox.run(["true"]).succeeded


@pytest.mark.usefixtures("sandbox")
def test_failure_of_the_sandbox_is_no_outcome():
    with Sandbox() as sandbox:
        thread = threading.Thread(target=lambda: wait_until(lambda: kill_supervisor(sandbox)))
        thread.start()
        with pytest.raises(SandboxError, match="the supervisor of the sandbox ended with status -9"):
            python(sandbox, "import time; time.sleep(60)", limits=Limits(time=10))
        thread.join()
        assert sandbox.run(["true"]).succeeded  # with a new supervisor
    with pytest.raises(SandboxError, match="closed"):
        sandbox.run(["true"])


def kill_supervisor(sandbox):
    """Kill the supervisor processes of all current runs; return whether there was any."""
    pool = sandbox._pool
    running = pool._all - set(pool._idle)
    for supervisor in running:
        time.sleep(0.2)
        supervisor.send_signal(signal.SIGKILL)
    return bool(running)


@pytest.mark.usefixtures("sandbox")
def test_closing_ends_runs():
    sandbox = Sandbox()
    seconds = "61.0625"
    thread = ThreadPoolExecutor(1)
    future = thread.submit(sandbox.run, ["sleep", seconds], limits=Limits(time=30))
    assert wait_until(lambda: with_word(seconds))
    sandbox.close()
    assert isinstance(future.exception(), SandboxError)
    assert not with_word(seconds)


def test_missing_bubblewrap(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name, **_: None)
    with pytest.raises(InputError, match="bubblewrap is not installed: apt-get install bubblewrap"):
        Sandbox()


def test_breached_sandbox_is_refused(monkeypatch):
    monkeypatch.setattr(sandbox_module, "find_bubblewrap", lambda: None)  # so that nothing is contained
    with pytest.raises(InputError, match=r"not contained here; they can .*reach the network .*; install: "):
        Sandbox()


def test_broken_bubblewrap_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(sandbox_module, "find_bubblewrap", lambda: "/bin/false")
    with pytest.raises(InputError, match="cannot be contained here: the sandbox does not start: no message"):
        Sandbox()


def test_unsafe_runs_have_limits_and_leave_nothing():
    with Sandbox(unsafe=True) as sandbox:
        assert not sandbox.contained
        outcome = sandbox.run(
            ["sh", "-c", "cat x; pwd; sleep 61.125 & echo y > y"], {"x": b"1\n"}, keep=["*"]
        )
        assert outcome.files == {"x": b"1\n", "y": b"y\n"}
        one, folder = outcome.stdout.decode().splitlines()
        assert one == "1"
        assert not os.path.exists(folder)  # noqa: PTH110
        assert not with_word("61.125")
        assert python(sandbox, "while True: pass", limits=Limits(time=0.2)).exceeded == "time"
        assert python(sandbox, "x = b'x' * (1 << 28)").exceeded == "memory"


def test_import_is_light():
    code = "import sys, simllm.execution.program_verdicts; print({'torch', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_sandbox_command(sandbox):
    done = process("repair", "sandbox")
    assert (done.returncode, done.stderr) == (0, "")
    rows = dict(line.split("\t") for line in done.stdout.splitlines())
    assert rows["sandbox"].startswith("bubblewrap ")
    attacks = [result for name, result in rows.items() if name.startswith("attack: ")]
    assert len(attacks) == 14
    assert set(attacks) == {"failed"}
    assert rows["language: python"].startswith("Python 3")


def test_sandbox_command_without_bubblewrap(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name, **_: None)
    done = run("repair", "sandbox")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"simllm: error: bubblewrap is not installed: apt-get install .*\n", done.stderr)


def test_sandbox_command_with_a_weak_sandbox(monkeypatch):
    results = {"gain rights": "", "reach the network": "192.0.2.1"}
    monkeypatch.setattr(sandbox_command, "attack_this_machine", lambda: ("bubblewrap 0.8.0", results))
    done = run("repair", "sandbox")
    assert done.returncode == 2
    assert "attack: gain rights\tfailed\nattack: reach the network\tsucceeded: 192.0.2.1\n" in done.stdout
    assert "they can reach the network (192.0.2.1); install: " in done.stderr
