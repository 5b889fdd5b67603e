"""Asked to stop: a signal ends a run between two updates, with its state saved."""

from __future__ import annotations

import signal
from types import FrameType

CHECKPOINTED = 75  # exit status, EX_TEMPFAIL: the same command goes on
_INTERRUPTED = 130  # what a shell expects of a process that was stopped from the keyboard

# The keyboard; the end of a job or of its time; what SLURM is asked to send before that.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class Interrupted(BaseException):
    """A signal has asked the run to stop; what is done is safe, and `status` is for the shell."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Stop:
    """Within it, a signal raises Interrupted, or is a wish while `patient`; the second one kills."""

    def __init__(self) -> None:
        self.asked = False
        self.patient = False
        self.status = CHECKPOINTED

    def __enter__(self) -> Stop:
        self._before = {number: signal.signal(number, self._ask) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        self.asked = True
        self.status = _INTERRUPTED if number == signal.SIGINT else CHECKPOINTED
        if not self.patient:
            raise Interrupted("stopped; the same command goes on", self.status)
