"""Running of the command of a tool under test.

A tool is a program that reads code and writes an answer, such as a summary or corrected code. Its command
runs as a process with a time limit. Environment variables tell the command the language of the code. A
command that judges the answers of the tool is run in the same way, without these variables.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence

from simllm.errors import InputError


def environment(language: str, draw: int) -> dict[str, str]:
    """Return the environment variables for one run of a tool's command.

    SIMLLM_LANGUAGE is the language of the code. SIMLLM_DRAW is the number of this run among the runs on the
    same code, counted from 0. No variable tells the command whether the code is original or rewritten.

    Args:
        language: The language of the code on which the command is run.
        draw: The number of the run.
    """
    return {"SIMLLM_LANGUAGE": language, "SIMLLM_DRAW": str(draw)}


def run_command(
    command: Sequence[str], text: str, environment: Mapping[str, str], timeout: float
) -> tuple[str, str]:
    """Run a command that reads a text and writes a text.

    Args:
        command: The words of the command.
        text: The text on its standard input.
        environment: Environment variables to add to those of this process.
        timeout: The time limit of the command, in seconds. A command that exceeds it is killed.

    Returns:
        The exit status as text, or "timeout"; and the standard output, which is empty after a timeout.

    Raises:
        InputError: The command cannot be started.
    """
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **environment},
            start_new_session=True,
        )
    except OSError as error:
        raise InputError(f"{command[0]}: cannot be started ({error.strerror})") from None
    try:
        output, _ = process.communicate(text.encode(errors="replace"), timeout)
    except subprocess.TimeoutExpired:
        return "timeout", ""
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return str(process.returncode), output.decode(errors="replace")
