"""Commands of users, which play the tool or the judge: their runs, and the folder that each run gets."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import IO, Any

from simllm.errors import InputError
from simllm.execution.watchdog import Watchdog

LARGEST_OUTPUT = 16 * 2**20  # bytes of an answer
_PAUSE = 0.05  # seconds between looks whether a silent command has ended
TIMEOUT, TOO_LONG = "timeout", "too long"  # statuses of commands that were ended
_LONGEST_NAME = 255  # bytes, of Linux
_FIELDS = "item.json"  # the file with the fields of an item, in the folder of a run


@contextlib.contextmanager
def item_folder(fields: Mapping[str, Any]) -> Iterator[str]:
    """Make a folder for one run of a command, with the fields of an item as JSON, and its files."""
    with tempfile.TemporaryDirectory(prefix="simllm-item-") as name:
        folder = Path(name)
        for inner, text in (fields.get("files") or {}).items():
            file = folder / inner
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode(errors="replace"))
        own = {name: value for name, value in fields.items() if name != "files"}
        (folder / _FIELDS).write_bytes(json.dumps(own, ensure_ascii=False).encode(errors="replace"))
        yield name


def check_files(item: Mapping[str, Any], where: str) -> None:
    """Check that the `files` of an item are texts by path, and that each path stays inside a folder."""
    files = item.get("files")
    if files is None:
        return
    if not isinstance(files, dict) or not all(isinstance(text, str) for text in files.values()):
        raise InputError(f"{where}: expected texts by path under files")
    for name in files:
        parts = PurePosixPath(name).parts
        is_long = any(len(part.encode(errors="replace")) > _LONGEST_NAME for part in parts)
        if not parts or parts[0] in ("/", "//", _FIELDS) or ".." in parts or "\0" in name or is_long:
            raise InputError(f"{where}: {name!r} under files is not a path for a file in a folder")
        # A folder and a file cannot have the same name.
        if any(str(above) in files for above in PurePosixPath(name).parents):
            raise InputError(f"{where}: {name!r} under files lies in another file")


class CommandRunner:
    """Runs commands, several at once, during a `with` block; none of them outlives the block.

    The commands are also ended if this process is killed. Each has a process group of its own.
    """

    def __enter__(self) -> CommandRunner:
        self._lock = threading.Lock()
        self._running: set[int] = set()
        self._is_closed = False
        self._watchdog = Watchdog().__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            # Under the lock, so that no command starts after the others have been killed.
            self._is_closed = True
            for group in self._running:
                _kill(group)
        self._watchdog.__exit__(kind, error, trace)

    def run(
        self,
        command: Sequence[str],
        text: str,
        variables: Mapping[str, str],
        timeout: float,
    ) -> tuple[str, str]:
        """Run a command on a text for up to `timeout` seconds; return its status and standard output.

        The status is the exit status as text, "timeout" or "too long"; the output is empty for the last two.
        At the end, all processes of the command's group are killed.
        """
        deadline = time.monotonic() + timeout
        # A file instead of a pipe: a command that does not read its input cannot block this process.
        with tempfile.TemporaryFile() as given:
            given.write(text.encode(errors="replace"))
            given.seek(0)
            process = self._start(command, given, variables)
        try:
            output = _read(process, deadline)
            if output is None:
                return TOO_LONG, ""
            process.wait(max(deadline - time.monotonic(), 0))
        except (subprocess.TimeoutExpired, TimeoutError):
            return TIMEOUT, ""
        finally:
            self._end(process)
        if self._is_closed:  # `__exit__` has killed the command: its status is not the command's own
            raise InputError(f"{command[0]}: was stopped")
        return str(process.returncode), output.decode(errors="replace")

    def _start(
        self, command: Sequence[str], given: IO[bytes], variables: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_closed:
                raise InputError(f"{command[0]}: was stopped")
            try:
                process = self._watchdog.start(
                    [*command],
                    stdin=given,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env={**os.environ, **variables},
                )
            except OSError as error:
                raise InputError(f"{command[0]}: cannot be started ({error.strerror})") from None
            except ValueError as error:  # a null byte
                raise InputError(f"{command[0]}: cannot be started ({error})") from None
            self._running.add(process.pid)
        return process

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Kill the processes that a command has left in its group."""
        with self._lock:
            _kill(process.pid)
            self._running.discard(process.pid)
            self._watchdog.forget(process.pid)
        if process.stdout:
            process.stdout.close()
        process.wait()


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _read(process: subprocess.Popen[bytes], deadline: float) -> bytes | None:
    """Read the standard output of a process until the process ends; None if there is too much.

    Raises TimeoutError after the deadline (of `time.monotonic`).
    """
    found: list[bytes] = []
    left = LARGEST_OUTPUT
    pipe = process.stdout
    if pipe is None:
        return b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while left >= 0:
            seconds = deadline - time.monotonic()
            # Processes that a command leaves behind may keep the pipe open, so its end is not waited for.
            # Before the select: all that the process wrote is in the pipe when it has ended.
            has_ended = process.poll() is not None
            if seconds <= 0 and not has_ended:
                raise TimeoutError
            if not selector.select(0 if has_ended else min(seconds, _PAUSE)):
                if has_ended:
                    return b"".join(found)
                continue
            part = os.read(pipe.fileno(), 2**16)
            if not part:
                return b"".join(found)
            found.append(part)
            left -= len(part)
    return None
