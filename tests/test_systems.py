"""Other systems than Linux: what works there, and what says that it needs Linux.

`python -m tests.test_systems ARGUMENTS` runs pytest with a stand-in for Windows: the modules of simllm see an
`os` and a `signal` without the names that Windows lacks, and cannot import the modules that Windows lacks.
All else, such as pytest and paths, stays that of this system.
"""

import builtins
import os
import signal
import subprocess
import sys
import types
from pathlib import Path

import pytest

# Nothing of simllm is imported here: it must see the stand-in.

MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
NAMES = set(
    """
    O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK SEEK_DATA SEEK_HOLE WNOHANG chown fchmod fchown fork
    forkpty geteuid getegid getgid getgroups getloadavg getpgid getpgrp getpriority getsid getuid killpg
    lchown mkfifo mknod nice openpty posix_fallocate posix_spawn pread pwrite register_at_fork
    sched_getaffinity sendfile setpgid setsid sync sysconf uname wait wait3 wait4
    SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGTSTP SIGUSR1 SIGUSR2 alarm pause
    pthread_kill pthread_sigmask setitimer sigwait
    """.split()
)


class Reduced(types.ModuleType):
    """A module without some of its names."""

    def __init__(self, module, **changed):
        super().__init__(module.__name__)
        vars(self).update(changed, real=module)

    def __getattr__(self, name):
        if name in NAMES:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(self.real, name)


def lock(descriptor, mode, count):
    """Lock a file as Windows does: a lock that another process has is an error of permission."""
    import fcntl

    try:
        fcntl.flock(descriptor, mode)
    except BlockingIOError as error:
        raise PermissionError(*error.args) from None


STAND_INS = {"os": Reduced(os, name="nt"), "signal": Reduced(signal)}


def reduced_import(name, globals=None, *arguments, **keywords):
    importer = (globals or {}).get("__name__", "")
    if importer == "simllm" or importer.startswith(("simllm.", "train.")):
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        if name in STAND_INS:
            return STAND_INS[name]
    return real_import(name, globals, *arguments, **keywords)


real_import = builtins.__import__


def run_tests_as_on_windows(*tests):
    command = [sys.executable, "-m", "tests.test_systems", "-p", "no:xdist", "-o", "addopts=", "-q", *tests]
    command += ["-m", "not slow"]
    root = Path(__file__).parents[1]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:]


@pytest.mark.slow
def test_output_files_as_on_windows():
    # Tests that need no model of their own; the slow lane has the others.
    run_tests_as_on_windows("tests/io/test_output_file.py", "tests/io/test_partial_file.py")


@pytest.mark.slow
def test_scoring_comparing_evaluating_and_the_playground_as_on_windows():
    # What computes only is the same on all systems; these read, write, start or serve something.
    files = ["test_metric", "scoring/test_contracts", "scoring/test_code", "metrics/test_judge"]
    files += ["analysis/test_comparison", "analysis/test_explanation", "analysis/test_playground_export"]
    files += ["evaluation/test_ratings", "evaluation/test_robustness", "evaluation/classifiers/test_protocol"]
    names = ("evaluate_contrast", "evaluate_correlation", "score_metrics", "score_options", "score_streaming")
    files += [f"cli/test_{name}" for name in names]
    run_tests_as_on_windows("tests/io", *(f"tests/{file}.py" for file in files))


@pytest.mark.parametrize(
    "arguments",
    [
        ["repair", "sandbox"],
        ["mine", "satd", "REPOSITORY", "-o", "items.jsonl"],
        ["check", "REPOSITORY", "--since", "HEAD"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_what_needs_linux_says_so_in_one_line(tmp_path, monkeypatch, arguments):
    from tests.command import run

    subprocess.run(["git", "init", "-q", tmp_path / "REPOSITORY"], check=True)
    monkeypatch.setattr(sys, "platform", "darwin")
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert " needs Linux, and this is " in done.stderr
    assert done.stderr.count("\n") == 1


def test_training_says_in_one_line_that_it_needs_linux():
    code = (
        "import runpy, simllm.io.packages, sys; sys.platform = 'darwin'; sys.argv = ['-m'];"
        "runpy.run_module('train.pretrain', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.startswith("error: training needs Linux, and this is ")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


if __name__ == "__main__":
    import fcntl

    sys.modules["msvcrt"] = types.ModuleType("msvcrt")
    sys.modules["msvcrt"].LK_NBLCK, sys.modules["msvcrt"].locking = fcntl.LOCK_EX | fcntl.LOCK_NB, lock
    builtins.__import__ = reduced_import
    sys.exit(pytest.main(sys.argv[1:]))
