"""The attacks by which a sandbox tests itself find every weakness that is built in on purpose."""

import contextlib
import tempfile
from pathlib import Path

import pytest

from simllm.errors import InputError
from simllm.execution import Sandbox
from simllm.execution.bubblewrap import find_bubblewrap
from simllm.execution.sandbox import attack
from simllm.execution.supervisor_pool import SupervisorPool

pytestmark = pytest.mark.slow
WRAPPER = """#!/usr/bin/python3 -IS
import os, sys

def without(words, *parts):
    for n in range(len(words)):
        if tuple(words[n : n + len(parts)]) == parts:
            return without(words[:n] + words[n + len(parts) :], *parts)
    return words

words, environment = sys.argv[1:], {{}}
{edit}
os.execve({bwrap!r}, ["bwrap", *words], environment)
"""
UNSHARE = ["--unshare-user", "--unshare-ipc", "--unshare-net", "--unshare-uts", "--unshare-cgroup"]
WRITES = {"write to the system", "fill the memory with files"}
WEAKNESSES = {
    "nothing": ("", set()),
    "network": ("words.insert(1, '--share-net')", {"reach the network"}),
    "user namespaces": ("words = without(words, '--disable-userns')", {"gain rights"}),
    "root inside": ("words[words.index('--uid') + 1] = '0'", {"gain rights"}),
    "no sizes": ("words = without(words, '--size', str(4 << 20))", {"fill the memory with files"}),
    "writable root": ("words = without(words, '--remount-ro', '/')", WRITES),
    "writable devices": ("words = without(words, '--remount-ro', '/dev')", WRITES),
    "first process": (
        "words = without(words, '--tmpfs', '/proc/1', '--remount-ro', '/proc/1')",
        {"see other processes"},
    ),
    "no filter": (
        "words = without(words, '--seccomp', '5')",
        {"hide memory", "use open files", "reach the network", "use refused system calls", "raise limits"},
    ),
    "zeros that can be mapped": (
        "words = without(words, '--dev-bind', '/dev/full', '/dev/zero')\n"
        "n = words.index('--remount-ro', words.index('/dev'))\n"
        "words[n:n] = ['--dev-bind', '/dev/zero', '/dev/zero']",
        {"hide memory"},
    ),
    "environment": ("environment = {'KEY': 'sk-123'}", {"read environment variables"}),
    "system files": ("words[:0] = ['--ro-bind', '/etc', '/etc']", {"read files of the machine"}),
    "many processes": ("words.remove('--nproc=16')", {"start processes without end", "raise limits"}),
}


@pytest.fixture
def weak_bwrap(sandbox):
    """Return a function that makes a weaker bwrap: a script that calls bwrap with changed options."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)

        def make(edit):
            file = Path(name) / "bwrap"
            file.write_text(WRAPPER.format(edit=edit, bwrap=find_bubblewrap()))
            file.chmod(0o755)
            return str(file)

        yield make


@pytest.mark.parametrize("weakness", WEAKNESSES)
def test_weaknesses_are_found(weak_bwrap, weakness):
    edit, expected = WEAKNESSES[weakness]
    with contextlib.closing(SupervisorPool(weak_bwrap(edit))) as pool:
        results = attack(pool)
    found = {name for name, result in results.items() if result}
    assert bool(found) == bool(expected)
    assert found <= expected, results


def test_visible_processes_end_the_attacks(weak_bwrap):
    """If the sandbox shows all processes of the machine, their memory counts, too, and exceeds the limit."""
    weak = weak_bwrap(f"words.remove('--unshare-all'); words[:0] = {UNSHARE}")
    message = "the attacks ended early: exceeded memory"
    with contextlib.closing(SupervisorPool(weak)) as pool, pytest.raises(InputError, match=message):
        attack(pool)


def test_an_old_bubblewrap_is_refused(weak_bwrap, monkeypatch):
    """Versions of bwrap before 0.8 do not know the option --disable-userns."""
    weak = weak_bwrap("words[words.index('--disable-userns')] = '--not-known'")
    monkeypatch.setattr("simllm.execution.sandbox.find_bubblewrap", lambda: weak)
    message = r"does not start: bwrap: Unknown option --not-known; install: .*bubblewrap \(0.8 or newer"
    with pytest.raises(InputError, match=message):
        Sandbox()
