"""Check of a variant with a command of the user, such as a test suite."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

from simllm.errors import InputError
from simllm.perturb.code.proof.verdicts import Proof

_FOLDER = "{dir}"


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
    # A command that fails on the original says nothing about the variant.
    if reason := _failure(words, original, timeout):
        raise InputError(f"the command fails on the original code: {reason}")
    reason = _failure(words, variant, timeout)
    return Proof(case_id, "refuted" if reason else "tests passed", reason=reason)


def _failure(words: list[str], folder: Path, timeout: float | None) -> str:
    """Return why the command failed, such as "exit status 1: the last line of output"; "" if it passed."""
    argv = [word.replace(_FOLDER, str(folder)) for word in words]
    try:
        # No sandbox: build tools need the network, caches and the home folder.
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
            check=False,
        )
    except OSError as error:
        raise InputError(f"cannot run {argv[0]!r}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        return f"it does not end within {timeout:g} s"
    if done.returncode == 0:
        return ""
    lines = done.stdout.decode(errors="replace").strip().splitlines()
    return f"exit status {done.returncode}" + (f": {lines[-1].strip()}" if lines else "")
