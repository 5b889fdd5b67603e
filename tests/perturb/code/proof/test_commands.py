import os
import signal
import subprocess
import sys
import time

import pytest

from simllm.errors import InputError
from simllm.perturb.code.proof import prove_by_command
from tests.execution.processes import wait_until, with_word

pytestmark = pytest.mark.slow

COMMAND = f"{sys.executable} {{dir}}/check.py"


@pytest.fixture
def folders(tmp_path):
    """Return a function that writes two folders, `original` and `variant`, each with a script `check.py`."""

    def write(original, variant):
        for name, text in (("original", original), ("variant", variant)):
            (tmp_path / name).mkdir()
            (tmp_path / name / "check.py").write_text(text)
        return tmp_path / "original", tmp_path / "variant"

    return write


def test_tests_pass_on_both_sides(folders):
    proof = prove_by_command(COMMAND, *folders("", "print(1)"), case_id="all")
    assert (proof.id, proof.verdict, proof.reason) == ("all", "tests passed", "")


def test_failing_tests_refute_the_variant(folders):
    proof = prove_by_command(COMMAND, *folders("", "print('1 failed'); raise SystemExit(3)"))
    assert (proof.verdict, proof.reason) == ("refuted", "exit status 3: 1 failed")


def test_a_variant_that_does_not_end_is_refuted(folders):
    proof = prove_by_command(COMMAND, *folders("", "import time; time.sleep(60)"), timeout=2)
    assert (proof.verdict, proof.reason) == ("refuted", "it does not end within 2 s")


@pytest.mark.parametrize("ends", [True, False])
def test_processes_of_the_command_are_killed(folders, ends):
    word = f"left-{os.getpid()}-{ends}"
    code = f"import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', {{!r}}, '{word}'])\n"
    code = code.format("import time; time.sleep(600)") + ("" if ends else "time.sleep(600)\n")
    begun = time.monotonic()
    proof = prove_by_command(COMMAND, *folders("", code), timeout=60 if ends else 1)
    assert proof.verdict == ("tests passed" if ends else "refuted")
    assert wait_until(lambda: not with_word(word))
    assert time.monotonic() - begun < 50


def test_only_the_end_of_a_long_output_is_kept(folders):
    code = "for _ in range(300): print('x' * 1_000_000)\nprint('last')\nraise SystemExit(2)"
    script = "import resource, sys; from pathlib import Path; from simllm.perturb.code.proof import *\n"
    script += "resource.setrlimit(resource.RLIMIT_DATA, (1 << 29,) * 2)\n"
    script += "print(prove_by_command(sys.argv[1], *map(Path, sys.argv[2:])).reason)"
    command = [sys.executable, "-c", script, COMMAND, *folders("", code)]
    assert subprocess.check_output(command, text=True) == "exit status 2: last\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_command_ends_with_an_interrupted_run(tmp_path, number):
    seconds = f"600.{os.getpid()}{number:d}"
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "a.py").write_text("def f(a, b):\n    return a < b\n")
    proof = f"sh -c 'sleep {seconds} & sleep {seconds}; true' {{dir}}"
    command = [sys.executable, "-m", "simllm", "perturb", "code", tmp_path / "code", "--prove", proof]
    with subprocess.Popen([*command, "-o", tmp_path / "out"], stderr=subprocess.DEVNULL) as process:
        assert wait_until(lambda: len(with_word(f"sleep\0{seconds}")) == 2)
        process.send_signal(number)
    assert wait_until(lambda: not with_word(f"sleep\0{seconds}"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (COMMAND, "the command fails on the original code: exit status 1"),
        ("make test", "expected {dir}"),
        ("/no/such/program {dir}", "cannot run '/no/such/program': No such file or directory"),
        ("make '{dir}", "No closing quotation"),
    ],
)
def test_bad_commands_are_errors(folders, command, message):
    with pytest.raises(InputError, match=message.replace("{", r"\{")):
        prove_by_command(command, *folders("raise SystemExit(1)", ""))


def test_a_signal_during_the_start_leaves_no_process(tmp_path, monkeypatch):
    """A signal just after the command has begun, when nobody has noted its process yet."""
    seconds = f"600.{os.getpid()}7"
    start = subprocess.Popen

    def interrupted_start(command, **options):
        process = start(command, **options)
        if command[0] == "sh":
            assert wait_until(lambda: with_word(f"sleep\0{seconds}"))
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0)  # here, Python would run the handler
        return process

    monkeypatch.setattr(subprocess, "Popen", interrupted_start)
    with pytest.raises(KeyboardInterrupt):
        prove_by_command(f"sh -c 'sleep {seconds}; true' {{dir}}", tmp_path, tmp_path)
    assert wait_until(lambda: not with_word(f"sleep\0{seconds}"))
