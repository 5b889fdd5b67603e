"""Templates of prompts: jinja2, checked and rendered in a sandboxed process with limits."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.llm import template_process

# The folders of ready templates, beside the studies that use them.
_FOLDERS = ("code/satd_mining/prompts",)
_PACKAGE = Path(__file__).parent.parent


def ready_templates() -> dict[str, Path]:
    """Return the files of the templates that come with simllm, by name (that of the file)."""
    found = (file for folder in _FOLDERS for file in (_PACKAGE / folder).glob("*.j2"))
    return {file.stem: file for file in sorted(found, key=lambda file: file.stem)}


def find_template(name: str, folder: Path | None = None, known: Mapping[str, Path] | None = None) -> Path:
    """Return the file of a ready template, or the file of this name; a relative one is below `folder`.

    `known` are the files of ready templates by name; by default those of `simllm generate`.
    """
    known = ready_templates() if known is None else known
    if name in known:
        return known[name]
    file = (folder or Path()) / Path(name).expanduser()
    if not os.path.lexists(file):
        raise InputError(f"template {name!r}: expected a file, or one of {', '.join(sorted(known))}")
    return file


class Templates:
    """Templates by name, rendered in a process of their own; threads may share it.

    The name of a template, such as that of its file, is in messages about errors. `variables` are the names
    that the templates may use. After its end, the process starts again.
    """

    def __init__(self, texts: Mapping[str, str], variables: Iterable[str]) -> None:
        self._texts, self._variables, self._lock = dict(texts), list(variables), threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def check(self) -> None:
        """Check the syntax of all templates, and that they use only known variables."""
        with self._lock:
            self._start()

    def render(self, name: str, values: Mapping[str, Any]) -> str:
        """Render a template, without empty lines at its beginning and end; the text may be empty."""
        with self._lock:
            self._start()
            return self._ask({"name": name, "values": values}, name)

    def _start(self) -> None:
        if self._process is not None:
            return
        process = subprocess.Popen(
            # -P keeps the folder of the script off sys.path, where a module of simllm could hide one of
            # Python.
            [sys.executable, "-P", template_process.__file__],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        # The process also ends with this object, not only with the interpreter.
        weakref.finalize(self, _end, process)
        self._process = process
        try:
            self._ask({"texts": self._texts, "variables": self._variables}, "the templates")
        except InputError:
            _end(process)
            self._process = None
            raise

    def _ask(self, request: Mapping[str, Any], what: str) -> str:
        """Send a request and return its result; raise `InputError` with the error of the template."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise AssertionError
        line = b""
        # A process that was killed for its time or memory shows as a closed pipe or an unfinished line.
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
        if not line.endswith(b"\n"):
            _end(process)
            self._process = None
            most = f"{template_process.MOST_SECONDS:.0f} seconds"
            raise InputError(f"{what}: rendering takes more than {most}, or too much memory")
        answer = json.loads(line)
        if "error" in answer:
            raise InputError(answer["error"])
        return str(answer["result"])


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    with process:  # closes the pipes and waits
        pass
