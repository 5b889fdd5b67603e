"""Self-test of the sandbox: attacks from inside show whether the sandbox isolates programs.

A *result* says how an attack succeeded, and is "" if the sandbox prevented it; results stand by the name of
the attack.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from simllm.errors import InputError
from simllm.execution.bubblewrap import INSTALL_BUBBLEWRAP, find_bubblewrap
from simllm.execution.limits import MIB, Limits
from simllm.execution.messages import Request, SandboxError
from simllm.execution.supervisor_pool import SupervisorPool

_SCRIPT = Path(__file__).with_name("attack_script.py")
_HOG = "x = bytearray(1 << 28)\nfor i in range(0, len(x), 4096): x[i] = 1\nprint('taken')\n"
_LIMITS = Limits(time=5, memory=64, disk=4, processes=16)


def attack(pool: SupervisorPool, readable: Sequence[str] = ()) -> dict[str, str]:
    """Attack the sandboxes of a pool, which lets commands read the `readable` paths; return the results.

    Raises:
        InputError: The sandbox does not start, or the script that runs the attacks fails.
    """
    try:
        return _attack(pool, readable)
    except SandboxError as error:
        message = f"programs cannot be contained here: {error}; install: {INSTALL_BUBBLEWRAP}"
        raise InputError(message) from None


def _attack(pool: SupervisorPool, readable: Sequence[str]) -> dict[str, str]:
    mark, network = f"simllm-{secrets.token_hex(8)}", str(Path("/proc/self/ns/net").readlink())
    arguments = [mark, network, str(_LIMITS.disk * MIB), str(_LIMITS.processes), *readable]
    files = {"attack.py": _SCRIPT.read_bytes()}
    outcome = pool.run(Request(["python3", "-I", "-S", "attack.py", *arguments], files, b"", _LIMITS, ()))
    if not outcome.succeeded:
        end = f"exceeded {outcome.exceeded}" if outcome.exceeded else f"status {outcome.status}"
        message = outcome.stderr.decode(errors="replace").strip()
        raise SandboxError(f"the attacks ended early: {end} {message}".strip())
    results: dict[str, str] = json.loads(outcome.stdout)
    # The word is random, so a process with it is one that the sandbox failed to kill.
    left = _processes_with(mark)
    results["outlive the program"] = f"{left} processes" if left else ""
    # Memory is measured from outside, so no attack from inside can tell whether the limit holds.
    hog = pool.run(Request(["python3", "-I", "-S", "-c", _HOG], {}, b"", _LIMITS, ()))
    results["take memory above the limit"] = "" if hog.exceeded == "memory" else "not noticed"
    return results


def attack_this_machine() -> tuple[str, dict[str, str]]:
    """Attack a new sandbox; return the version of bubblewrap and the results.

    Raises:
        InputError: bubblewrap or Python is not installed, or the sandbox does not start.
    """
    bwrap = find_bubblewrap()
    version = subprocess.run([bwrap, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    with contextlib.closing(SupervisorPool(bwrap)) as pool:
        return version, attack(pool)


def raise_if_breached(results: Mapping[str, str]) -> None:
    """Raise `InputError` if an attack succeeded."""
    if achieved := [f"{name} ({result})" for name, result in results.items() if result]:
        raise InputError(
            f"programs are not contained here; they can {'; '.join(achieved)}; install: {INSTALL_BUBBLEWRAP}"
        )


def _processes_with(word: str) -> int:
    """Return the number of processes on this machine whose command line contains a word."""
    number = 0
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has just ended
            number += word.encode() in file.read_bytes()
    return number
