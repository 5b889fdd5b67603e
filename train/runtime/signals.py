"""Signals: they end a run between two updates, after its state is saved."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from types import FrameType

CHECKPOINTED = 75  # exit status, EX_TEMPFAIL: the same command resumes the run
INTERRUPTED = 130  # what a shell expects of a process that was stopped from the keyboard

# The keyboard; the end of a job or of its time; what SLURM is asked to send before that.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class Interrupted(BaseException):
    """The run stops because of a signal; `status` is its exit status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Stop:
    """A context in which the first signal stops the run in an orderly way, and the second one kills it.

    While `patient` is false, the signal raises Interrupted in the main thread. While it is true,
    the signal sets `asked`, and the training loop stops after its update.

    Attributes:
        asked: Whether a signal has come.
        patient: Whether to finish the update first.
        status: The exit status that the signal asks for.
        interrupted: The exception that was raised. A library that calls back into Python may turn
            it into an error of its own; the signal is the cause of that error.
    """

    def __init__(self) -> None:
        self.asked = False
        self.patient = False
        self.status = CHECKPOINTED
        self.interrupted: Interrupted | None = None

    def __enter__(self) -> Stop:
        self._before = {number: signal.signal(number, self._ask) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        self.asked = True
        self.status = INTERRUPTED if number == signal.SIGINT else CHECKPOINTED
        if not self.patient:
            self.interrupted = Interrupted("stopped; rerun the same command to resume", self.status)
            raise self.interrupted


def ignore() -> None:
    """Ignore the signals in a helper process; the process that started it ends it."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def call(command: Sequence[str]) -> int:
    """Run a training command in a process of its own and pass signals on to it.

    The keyboard's signal reaches both processes without help.

    Returns:
        The exit status of the command; 128 + N if signal N killed it.
    """
    process = subprocess.Popen(command)

    def forward(number: int, frame: FrameType | None) -> None:
        if number != signal.SIGINT:
            process.send_signal(number)

    before = {number: signal.signal(number, forward) for number in _SIGNALS}
    try:
        status = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return status if status >= 0 else 128 - status
