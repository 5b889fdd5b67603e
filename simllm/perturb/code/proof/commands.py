"""Check of a variant with a command of the user, such as a test suite."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import threading
from pathlib import Path
from typing import IO

from simllm.errors import InputError
from simllm.execution.watchdog import Watchdog
from simllm.perturb.code.proof.verdicts import Proof

_FOLDER = "{dir}"
_KEPT = 1 << 16  # bytes of the output
_GRACE = 5.0  # seconds in which a command can clean up


def prove_by_command(
    command: str, original: Path, variant: Path, timeout: float | None = None, case_id: str = ""
) -> Proof:
    """Run a command on the original and on the variant; it passes if its exit status is 0.

    The command runs without a shell. `{dir}` in it stands for the folder with the code. After `timeout`
    seconds it counts as failed. The verdict is "tests passed" or "refuted".

    Raises:
        InputError: The command cannot be started, has no `{dir}`, or fails on the original code.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(f"command {command!r}: {error}") from None
    if not any(_FOLDER in word for word in words):
        raise InputError(
            f"command {command!r}: expected {_FOLDER}, which stands for the folder with the code"
        )
    with Watchdog() as watchdog:
        # A command that fails on the original says nothing about the variant.
        if reason := _failure(words, original, timeout, watchdog):
            raise InputError(f"the command fails on the original code: {reason}")
        reason = _failure(words, variant, timeout, watchdog)
    return Proof(case_id, "refuted" if reason else "tests passed", reason=reason)


def _failure(words: list[str], folder: Path, timeout: float | None, watchdog: Watchdog) -> str:
    """Return why the command failed, such as "exit status 1: the last line of output"; "" if it passed."""
    argv = [word.replace(_FOLDER, str(folder)) for word in words]
    pipe, output = subprocess.PIPE, bytearray()
    try:
        # No sandbox: build tools need the network, caches and the home folder.
        process = watchdog.start(argv, stdin=subprocess.DEVNULL, stdout=pipe, stderr=subprocess.STDOUT)
    except OSError as error:
        raise InputError(f"cannot run {argv[0]!r}: {error.strerror}") from None
    reader = threading.Thread(target=_read_end, args=(process.stdout, output), daemon=True)
    reader.start()
    try:
        status = process.wait(timeout)
    except subprocess.TimeoutExpired:
        return f"it does not end within {timeout:g} s"
    finally:  # also after Ctrl+C
        _end(process)
        watchdog.forget(process.pid)
        reader.join(_GRACE)  # a process that has left the group may keep the pipe open
    lines = bytes(output).decode(errors="replace").strip().splitlines()
    return f"exit status {status}" + (f": {lines[-1].strip()}" if lines else "") if status else ""


def _read_end(pipe: IO[bytes], output: bytearray) -> None:
    """Read a pipe to its end, and keep the last bytes."""
    while part := os.read(pipe.fileno(), _KEPT):
        output += part
        del output[:-_KEPT]


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command, and kill what is left of its process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
