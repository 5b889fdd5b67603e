"""A model in a GGUF file, served on this machine for the time of a `with` block."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from simllm.errors import InputError, OptionError
from simllm.io import packages
from simllm.io.tables import on_one_line
from simllm.llm import local_server
from simllm.llm.model import Model

_NUMBERS = itertools.count(1)  # of servers: each has a variable of its own for its key
PARALLEL = 4  # requests at the same time, if nothing else is asked for: more would not be faster on a CPU
CONTEXT = 4096  # tokens


@contextlib.contextmanager
def served(file: Path, model: Model, context: int = CONTEXT) -> Iterator[Model]:
    """Serve a GGUF file with llama.cpp on the loopback, and yield the model with the address of the server.

    The server has a free port and a random API key, and ends with the block and with this process, also if it
    is killed. `context` is the largest number of tokens of a request with its reply.

    Raises:
        InputError: The file is no GGUF file, llama.cpp cannot load it, or it is not installed.
    """
    if context < 1:
        raise OptionError("{context} {number}: expected a whole number from 1", number=context)
    _check(file)
    if find_spec("xllamacpp") is None:
        raise InputError(packages.missing_package("xllamacpp", "local"))
    key, variable = secrets.token_urlsafe(24), f"SIMLLM_LOCAL_{next(_NUMBERS)}_API_KEY"
    settings = {
        "file": str(file.resolve()), "key": key, "parallel": model.parallel, "context": context,
    }  # fmt: skip
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-P", local_server.__file__],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            start_new_session=True,
        )  # fmt: skip
        try:
            address = _start(process, settings)
            if not address:
                raise InputError(f"{file}: llama.cpp cannot load it ({_first_error(log)})")
            # In the environment, where keys are read, and in no field that may be printed or written.
            os.environ[variable] = key
            name = model.model or file.stem
            yield replace(model, base_url=f"{address}/v1", model=name, key_variable=variable)
        finally:
            os.environ.pop(variable, None)
            process.kill()
            with process:  # closes the pipes and waits
                pass


def _check(file: Path) -> None:
    try:
        with file.open("rb") as data:
            is_gguf = data.read(4) == b"GGUF"
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    if not is_gguf:
        raise InputError(f"{file}: is no GGUF file")


def _start(process: subprocess.Popen[bytes], settings: dict[str, object]) -> str:
    """Send the settings, and return the address; "" if the process ends."""
    assert process.stdin
    assert process.stdout
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(json.dumps(settings).encode() + b"\n")
        process.stdin.flush()
    address = process.stdout.readline().decode().strip()
    return address if address.startswith("http://127.0.0.1:") else ""


def _first_error(log: IO[bytes]) -> str:
    """Return the first line of the log of llama.cpp that tells of an error."""
    log.seek(0)
    lines = log.read().decode(errors="replace").splitlines()
    errors = [line for line in lines if "error" in line.lower() or "fail" in line.lower()]
    return on_one_line((errors or lines or ["no message"])[0])[:200]
