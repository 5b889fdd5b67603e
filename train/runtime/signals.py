"""Signals: a training run saves its state and stops; commands forward signals to commands that they run."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping, Sequence
from types import FrameType

# Exit statuses: EX_TEMPFAIL, after which the same command resumes the run; and 128 + SIGINT.
STOPPED_BY_SIGNAL = 75
STOPPED_BY_KEYBOARD = 130

# Ctrl-C; the end of a job; the signal that our job scripts ask SLURM to send before that.
SIGNALS = (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGUSR1", signal.SIGTERM))  # none on Windows


class Stopped(BaseException):
    """Exception for a command that a signal stopped, with the line to print and the exit status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class StopRequest:
    """Context manager: SIGINT (Ctrl-C), SIGTERM or SIGUSR1 stops the run; the same signal again kills it.

    Attributes:
        requested: Whether a signal has arrived.
        after_update: Whether the first signal only sets `requested`, so that the training loop stops soon
            and saves its state. Otherwise, the signal raises Stopped in the main thread.
        status: The exit status for a run that a signal stops.
        exception: The Stopped that a signal raised, or None. A library may catch it and raise another
            error; this attribute then still tells the cause.
    """

    def __init__(self) -> None:
        self.requested = False
        self.after_update = False
        self.status = STOPPED_BY_SIGNAL
        self.exception: Stopped | None = None

    def __enter__(self) -> StopRequest:
        self._old_handlers = {number: signal.signal(number, self._handle) for number in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._old_handlers.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        # The same signal again kills the process, which may be stuck.
        signal.signal(number, signal.SIG_DFL)
        self.requested = True
        self.status = STOPPED_BY_KEYBOARD if number == signal.SIGINT else STOPPED_BY_SIGNAL
        if not self.after_update:
            self.exception = Stopped("stopped; rerun the same command to resume", self.status)
            raise self.exception


def ignore_signals() -> None:
    """Ignore the signals in a worker process; its parent process will end the worker."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def run_forwarding_signals(command: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Run a command in a child process, and forward SIGTERM and SIGUSR1 to it.

    The result is the exit status of the command, or 128 + N if signal N killed it.
    """
    process = subprocess.Popen(command, env=environment)

    def forward(number: int, frame: FrameType | None) -> None:
        # Ctrl-C sends SIGINT to the child process, too.
        if number != signal.SIGINT:
            process.send_signal(number)

    old_handlers = {number: signal.signal(number, forward) for number in SIGNALS}
    try:
        status = process.wait()
    finally:
        for number, handler in old_handlers.items():
            signal.signal(number, handler)
    return status if status >= 0 else 128 - status
