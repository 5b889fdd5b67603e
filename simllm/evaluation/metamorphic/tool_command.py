"""Running of commands: the tool under test, and the judge of its answers."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import IO

from simllm.errors import InputError

LARGEST_OUTPUT = 16 * 2**20  # bytes of an answer
_PAUSE = 0.05  # seconds between looks whether a silent command has ended
TIMEOUT, TOO_LONG = "timeout", "too long"  # statuses of commands that were ended

# A process of its own, because a process that is killed cannot end its children. It reads the number of each
# process group when the group begins, and again when it ends; at the end of its input it kills the others.
_WATCHDOG = """
import os, signal, sys
running = set()
for line in sys.stdin:
    running ^= {int(line)}
for group in running:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
"""


def environment(language: str, draw: int) -> dict[str, str]:
    """Return the environment variables for a run of a tool; none tells whether the code is rewritten.

    `draw` is the number of this run among the runs on the same code, counted from 0.
    """
    return {"SIMLLM_LANGUAGE": language, "SIMLLM_DRAW": str(draw)}


class CommandRunner:
    """Runs commands, several at once, during a `with` block; none of them outlives the block.

    The commands are also ended if this process is killed. Each has a process group of its own.
    """

    def __enter__(self) -> CommandRunner:
        self._lock = threading.Lock()
        self._running: set[int] = set()
        self._is_closed = False
        self._watchdog = subprocess.Popen(
            # Isolated and without site packages: it starts fast, and runs none of the user's code.
            [sys.executable, "-I", "-S", "-c", _WATCHDOG],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            # Under the lock, so that no command starts after the others have been killed.
            self._is_closed = True
            for group in self._running:
                _kill(group)
        with contextlib.suppress(OSError):
            self._watchdog.communicate()

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
                process = subprocess.Popen(
                    command,
                    stdin=given,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env={**os.environ, **variables},
                    start_new_session=True,
                )
            except OSError as error:
                raise InputError(f"{command[0]}: cannot be started ({error.strerror})") from None
            except ValueError as error:  # a null byte
                raise InputError(f"{command[0]}: cannot be started ({error})") from None
            self._running.add(process.pid)
            self._tell_watchdog(process.pid)
        return process

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Kill what is left of the process group of a command."""
        with self._lock:
            _kill(process.pid)
            self._running.discard(process.pid)
            self._tell_watchdog(process.pid)
        if process.stdout:
            process.stdout.close()
        process.wait()

    def _tell_watchdog(self, group: int) -> None:
        pipe = self._watchdog.stdin
        with contextlib.suppress(BrokenPipeError, ValueError):
            if pipe is not None:
                pipe.write(b"%d\n" % group)
                pipe.flush()


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
