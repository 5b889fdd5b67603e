"""The sandbox, which runs untrusted commands in isolation and under limits, and its test of itself.

In the test, attacks from inside show whether the sandbox isolates programs. A *result* says how an attack
succeeded, and is "" if the sandbox prevented it; results stand by the name of the attack.
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
from simllm.execution.messages import Outcome, Request, SandboxError
from simllm.execution.supervisor_pool import SupervisorPool

_DEFAULT_LIMITS = Limits()
_SCRIPT = Path(__file__).with_name("attack_script.py")
_HOG = "x = bytearray(1 << 28)\nfor i in range(0, len(x), 4096): x[i] = 1\nprint('taken')\n"
_ATTACK_LIMITS = Limits(time=5, memory=64, disk=4, processes=16)


class Sandbox:
    """A sandbox for untrusted commands.

    Commands run in bubblewrap: as an ordinary user without rights, without network, with read-only system
    folders, in a working folder in memory, and with few environment variables. At the end of a run, all its
    processes are killed and its files removed. A new sandbox first attacks itself, and raises an error if an
    attack succeeds.

    Several threads may use a sandbox at the same time. Use it in a `with` block, or call `close` at the end.

    Args:
        unsafe: Run commands without bubblewrap. They can then read and change whatever an ordinary user can.
        readable: Files and folders besides `/usr` that commands may read, under the same paths as outside.

    Attributes:
        contained: Whether commands are isolated by bubblewrap; the opposite of `unsafe`.

    Raises:
        InputError: A `readable` path does not exist, the sandbox does not start, or an attack succeeded. In
            the last two cases, the message says what to install.

    Examples:
        Compile a Java program once, and run it on several inputs:

        >>> with Sandbox() as sandbox:
        ...     built = sandbox.run(["javac", "A.java"], {"A.java": source}, keep=["*.class"])
        ...     outcomes = [sandbox.run(["java", "A"], built.files, stdin) for stdin in inputs]
    """

    def __init__(self, unsafe: bool = False, readable: Sequence[Path] = ()) -> None:
        self.contained = not unsafe
        if missing := [path for path in readable if not path.exists()]:
            raise InputError(f"{missing[0]}: does not exist, so commands cannot read it")
        names = [str(path.resolve()) for path in readable]
        self._pool = SupervisorPool(None if unsafe else find_bubblewrap(), names)
        if self.contained:
            try:
                raise_if_breached(attack(self._pool, names))
            except BaseException:
                self.close()
                raise

    def run(
        self,
        argv: Sequence[str],
        files: Mapping[str, bytes] | None = None,
        stdin: bytes = b"",
        limits: Limits = _DEFAULT_LIMITS,
        keep: Sequence[str] = (),
    ) -> Outcome:
        """Run a command in a new working folder, which is also the HOME folder of the command.

        Args:
            argv: The program and its arguments. Programs are searched in /usr/bin, /bin and /usr/local/bin.
            files: The content of each (executable) file to write into the working folder, by relative path.
            stdin: The bytes of standard input.
            limits: The limits of the run.
            keep: Patterns for relative paths, as in `fnmatch`; `*` also matches `/`. After the run, matching
                files are read from the working folder into `Outcome.files`.

        Raises:
            InputError: The path of a file leads out of the working folder.
            SandboxError: The sandbox failed, so nothing is known about the command.
        """
        return self._pool.run(Request(argv, files or {}, stdin, limits, keep))

    def close(self) -> None:
        """Stop all runs, and the supervisors that control them."""
        self._pool.close()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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
    arguments = [mark, network, str(_ATTACK_LIMITS.disk * MIB), str(_ATTACK_LIMITS.processes), *readable]
    files = {"attack.py": _SCRIPT.read_bytes()}
    outcome = pool.run(
        Request(["python3", "-I", "-S", "attack.py", *arguments], files, b"", _ATTACK_LIMITS, ())
    )
    if not outcome.succeeded:
        end = f"exceeded {outcome.exceeded}" if outcome.exceeded else f"status {outcome.status}"
        message = outcome.stderr.decode(errors="replace").strip()
        raise SandboxError(f"the attacks ended early: {end} {message}".strip())
    results: dict[str, str] = json.loads(outcome.stdout)
    # The word is random, so a process with it is one that the sandbox failed to kill.
    left = _processes_with(mark)
    results["outlive the program"] = f"{left} processes" if left else ""
    # Memory is measured from outside, so no attack from inside can tell whether the limit holds.
    hog = pool.run(Request(["python3", "-I", "-S", "-c", _HOG], {}, b"", _ATTACK_LIMITS, ()))
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
