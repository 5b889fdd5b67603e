"""Check of a variant (rewritten code) with a command that the user gives, such as a test suite."""

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
from simllm.perturb.code.proof.verdicts import Proof

_FOLDER = "{dir}"
_KEPT = 1 << 16  # bytes of the output
_GRACE = 5.0  # seconds in which a command can clean up


def prove_by_command(
    command: str, original: Path, variant: Path, timeout: float | None = None, case_id: str = ""
) -> Proof:
    """Check a variant (rewritten code) by running a command that the user gives, such as a test suite.

    The command first runs on the original code, and then on the variant. It runs without a shell. It also
    runs without a sandbox, because build tools need the network, caches and the home folder.

    Args:
        command: The command. `{dir}` stands for the folder with the code, as in `mvn -f {dir}/pom.xml test`.
            The command passes if its exit status is 0.
        original: The folder with the original code.
        variant: The folder with the variant.
        timeout: The seconds after which the command is stopped and counts as failed; None for no limit.
        case_id: A name for this check in reports. It becomes the `id` of the returned `Proof`.

    Returns:
        The outcome of the check. Its verdict is "tests passed" if the command passes on the variant, and
        "refuted" otherwise.

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
    if reason := _failure(words, original, timeout):
        raise InputError(f"the command fails on the original code: {reason}")
    reason = _failure(words, variant, timeout)
    return Proof(case_id, "refuted" if reason else "tests passed", reason=reason)


def _failure(words: list[str], folder: Path, timeout: float | None) -> str:
    """Run a command on the code in a folder, and return an error message if the command fails.

    Args:
        words: The words of the command; `{dir}` in them is replaced by the folder.
        folder: The folder with the code.
        timeout: The seconds after which the command is stopped and counts as failed; None for no limit.

    Returns:
        The message, such as "exit status 1" with the last line of the output; empty if the command passed.
    """
    argv = [word.replace(_FOLDER, str(folder)) for word in words]
    pipe, output = subprocess.PIPE, bytearray()
    try:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=pipe, stderr=subprocess.STDOUT, start_new_session=True
        )
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
