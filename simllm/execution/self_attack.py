"""Attacks on the sandbox of this machine, which tell whether it contains programs."""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path

from simllm.execution.run_messages import Limits, Request, SandboxError
from simllm.execution.supervisor_pool import SupervisorPool

_SCRIPT = Path(__file__).with_name("attack_script.py")
_HOG = "x = bytearray(1 << 28)\nfor i in range(0, len(x), 4096): x[i] = 1\nprint('taken')\n"
_LIMITS = Limits(time=5, memory=64, disk=4, processes=16)
_MIB = 1 << 20


def attack(pool: SupervisorPool) -> dict[str, str]:
    """Attack the sandbox from inside, which takes a fraction of a second.

    Args:
        pool: Starts the sandboxes.

    Returns:
        For each attack, what it achieved; empty if the sandbox held.

    Raises:
        SandboxError: The attacks cannot be run.
    """
    with _listeners() as (port, name):
        arguments = [str(port), name, str(_LIMITS.disk * _MIB), str(_LIMITS.processes)]
        files = {"attack.py": _SCRIPT.read_bytes()}
        outcome = pool.run(Request(["python3", "-I", "-S", "attack.py", *arguments], files, b"", _LIMITS, ()))
    if not outcome.succeeded:
        raise SandboxError(f"the attacks ended early: {outcome.stderr.decode(errors='replace').strip()}")
    results: dict[str, str] = json.loads(outcome.stdout)
    late = outcome.wall_seconds > _LIMITS.wall_time
    results["outlive the program"] = f"{outcome.wall_seconds:.0f} s" if late else ""
    hog = pool.run(Request(["python3", "-I", "-S", "-c", _HOG], {}, b"", _LIMITS, ()))
    results["take memory above the limit"] = "" if hog.exceeded == "memory" else "not noticed"
    return results


@contextlib.contextmanager
def _listeners() -> Iterator[tuple[int, str]]:
    """Listen on a port of this machine and on an abstract socket, which no sandbox may reach."""
    name = f"simllm-{secrets.token_hex(8)}"
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind("\0" + name)
        unix.listen()
        yield tcp.getsockname()[1], name
