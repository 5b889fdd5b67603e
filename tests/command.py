"""Run the command `simllm` in tests: in this process, or in a new one."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

from simllm.cli.main import main


def run(*arguments, input="", cwd=None, env=None):
    """Run the command in this process, which saves the seconds for importing PyTorch.

    Returns a `subprocess.CompletedProcess`, as `subprocess.run` does.
    """
    words = [str(word) for word in arguments]
    out, errors = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    stdin = io.TextIOWrapper(io.BytesIO(input.encode()), encoding="utf-8")
    with contextlib.ExitStack() as held:
        held.enter_context(contextlib.chdir(cwd or "."))
        held.enter_context(mock.patch.dict(os.environ, env or {}))
        held.enter_context(mock.patch.object(sys, "stdin", stdin))
        held.enter_context(contextlib.redirect_stdout(out))
        held.enter_context(contextlib.redirect_stderr(errors))
        try:
            status = main(words)
        except SystemExit as stop:
            status = stop.code
    out.flush()
    errors.flush()
    return subprocess.CompletedProcess(
        words, status or 0, out.buffer.getvalue().decode(), errors.buffer.getvalue().decode()
    )


def process(*arguments, **options):
    """Run the command in a new process."""
    command = [sys.executable, "-m", "simllm", *map(str, arguments)]
    options = {"capture_output": True, "text": True, "timeout": 120, "check": False, **options}
    return subprocess.run(command, **options)


def is_running(process):
    """Return whether a process runs, by its number; one that has ended but is not yet waited for does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
