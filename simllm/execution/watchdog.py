"""Signals and ends: of commands that run outside of the sandbox, such as a test suite, and of threads."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, TypeVar

from simllm.io.packages import require_linux

# A process of its own, because a process that is killed cannot end its children. It reads the number of each
# process group when the group begins, and again when it ends; at the end of its input it kills the others.
_PROGRAM = """
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


@contextlib.contextmanager
def postponed(numbers: Iterable[int]) -> Iterator[None]:
    """Delay signals during a `with` block; their handlers run at its end."""
    # Only the main thread runs handlers, and may change them.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []
    # A handler that Python did not install is None, and could not be put back.
    known = [number for number in numbers if signal.getsignal(number) is not None]
    handlers = {number: signal.signal(number, lambda came, _: waiting.append(came)) for number in known}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for came in waiting:
            signal.raise_signal(came)


Result = TypeVar("Result")


def as_ended(futures: Sequence[Future[Result]]) -> Iterator[Future[Result]]:
    """Yield futures as they end, like `as_completed`, which may sleep through a signal until a future ends.

    Python notices a signal that comes just before the main thread falls asleep when it wakes up.
    """
    ended: SimpleQueue[Future[Result]] = SimpleQueue()
    for future in futures:
        future.add_done_callback(ended.put)
    for _ in futures:
        found = None
        while found is None:
            with contextlib.suppress(Empty):
                found = ended.get(timeout=0.5)
        yield found


class Watchdog:
    """Kills the process groups that it watches at the end of a `with` block, or of this process."""

    def __enter__(self) -> Watchdog:
        require_linux("running commands", or_macos=True)
        self._process = subprocess.Popen(
            # Isolated and without site packages: it starts fast, and runs none of the user's code.
            [sys.executable, "-I", "-S", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._process.communicate()

    def start(self, command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start a command in a process group of its own, and watch the group."""
        # A signal in between would leave a process that nobody knows.
        with postponed((signal.SIGINT, signal.SIGTERM, signal.SIGHUP)):
            return subprocess.Popen(command, start_new_session=True, preexec_fn=self._tell_own, **options)

    def _tell_own(self) -> None:
        """Watch this process, before it becomes a command: its parent may be killed before it could tell."""
        if self._process.stdin is not None:
            os.write(self._process.stdin.fileno(), b"%d\n" % os.getpid())

    def forget(self, group: int) -> None:
        """Watch a process group no longer."""
        pipe = self._process.stdin
        with contextlib.suppress(BrokenPipeError, ValueError):
            if pipe is not None:
                pipe.write(b"%d\n" % group)
                pipe.flush()
