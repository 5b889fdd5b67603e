"""The supervisor: a small process that runs commands for its caller, one at a time.

It reads requests from standard input and writes outcomes to standard output. When the caller ends or is
killed, the supervisor kills all processes of the current run, and ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys

from simllm.execution.messages import SandboxError, receive_request, send_outcome
from simllm.execution.supervised_run import (
    FIXED_DESCRIPTORS,
    CallerGoneError,
    Setup,
    SupervisedRun,
    drop_root_rights,
)

_PR_SET_CHILD_SUBREAPER = 36
_CHECK_INTERVAL = 0.5  # seconds


def main() -> None:
    """Run commands until the caller ends.

    The first argument is a JSON object: `caller` (its process id), `bwrap` and `readable` as in `Setup`.
    """
    settings = json.loads(sys.argv[1])
    if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise SystemExit("simllm: the sandbox needs Linux")
    while os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) < FIXED_DESCRIPTORS[-1]:
        pass  # occupies the descriptors that started processes get
    if os.geteuid() == 0:
        drop_root_rights()
    setup = Setup(settings["bwrap"], settings["readable"])
    requests, outcomes = sys.stdin.buffer, sys.stdout.buffer
    with contextlib.suppress(EOFError, BrokenPipeError, CallerGoneError):
        _end_with(settings["caller"])
        while True:
            try:
                request = receive_request(requests)
                send_outcome(outcomes, SupervisedRun(request, setup, requests.fileno()).run())
            except SandboxError as error:
                send_outcome(outcomes, error)


def _end_with(caller: int) -> None:
    """Raise `CallerGoneError` in this process soon after the caller has ended, whatever is going on here."""

    def check(*_: object) -> None:
        if os.getppid() != caller:
            signal.setitimer(signal.ITIMER_REAL, 0)  # the cleaning up must not be interrupted
            raise CallerGoneError

    # The ends of the pipes do not tell it reliably: a process that the caller forked may hold them open.
    signal.signal(signal.SIGALRM, check)
    signal.setitimer(signal.ITIMER_REAL, _CHECK_INTERVAL, _CHECK_INTERVAL)
