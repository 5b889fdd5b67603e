"""The jinja2 templates of the prompts, which users can replace by their own."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from simllm.errors import InputError
from simllm.repair import template_process

_INCLUDED = Path(__file__).with_name("prompts")
# The variables of a template. None stands for a part that the item lacks or that the round does not add.
VARIABLES = ("item", "guidance", "solution", "failed", "compile_log", "verdict", "score", "bar")


@dataclass(frozen=True)
class Prompts:
    """The texts of the templates such as "request.j2" and of "strategies.json", by file name."""

    texts: Mapping[str, str]

    @cached_property
    def _process(self) -> _TemplateProcess:
        return _TemplateProcess(self.texts)

    def check(self) -> None:
        """Check the syntax of all templates, and that they use only known variables."""
        self._process.check()

    def render(self, name: str, values: Mapping[str, Any]) -> str:
        """Make a prompt from a template, without empty lines at its beginning and end; it may be "".

        `values` has a value for each of `VARIABLES`; None for a variable without a value.
        """
        return self._process.render(name, values)


class _TemplateProcess:
    """The process that renders the templates. Several threads may use it; after its end, it starts again."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts, self._lock = dict(texts), threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def check(self) -> None:
        with self._lock:
            self._start()

    def render(self, name: str, values: Mapping[str, Any]) -> str:
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
            self._ask({"texts": self._texts, "variables": VARIABLES}, "the templates")
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


def load_prompts(folder: Path | None = None) -> Prompts:
    """Load the included prompts, with the user's own prompts in their place.

    `folder` has templates (`.j2`), or `strategies.json`, or both. A file whose name is not that of an
    included file must be used by another file; otherwise the name is probably a typing error.
    """
    # Texts, not paths, because the settings of a run record them.
    texts = included = _read(_INCLUDED)
    if folder is not None:
        own = _read(folder)
        if not own:
            raise InputError(f"{folder}: holds no template (.j2) and no strategies.json")
        texts = included | own
        for name in sorted(own.keys() - included.keys()):
            if not _is_used(name, texts):
                raise InputError(
                    f"{folder / name}: no other file uses it; to replace an included file, give yours its "
                    f"name: {', '.join(included)}"
                )
    prompts = Prompts(texts)
    try:
        prompts.check()
    except InputError as error:
        raise InputError(f"{folder or _INCLUDED}: {error}") from None
    return prompts


def _is_used(name: str, texts: Mapping[str, str]) -> bool:
    """Return whether another template or `strategies.json` contains a template's name in quotes."""
    quoted = re.compile(f"[\"']{re.escape(name)}[\"']")
    return any(quoted.search(text) for other, text in texts.items() if other != name)


def _read(folder: Path) -> dict[str, str]:
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix in (".j2", ".json"))
        return {path.name: path.read_text(encoding="utf-8") for path in paths}
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{folder}: a template is not UTF-8 ({error.reason})") from None
