"""The supervisor: a small process that runs commands for another process (the caller), one at a time.

It reads requests from standard input and writes outcomes to standard output. When the caller ends or is
killed, the supervisor kills all processes of the current run, and ends.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import sys

from simllm.execution.drop_root_rights import drop_root_rights
from simllm.execution.sandbox_outcome import SandboxError
from simllm.execution.supervised_run import FIXED_DESCRIPTORS, CallerGoneError, Setup, SupervisedRun
from simllm.execution.supervisor_messages import receive_request, send_outcome

_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    """Run commands that another process (the caller) requests, until the caller ends.

    Requests are read from standard input, and the outcomes are written to standard output. The first argument
    on the command line is a JSON object with these keys:

    - `caller`: The process id of the caller.
    - `bwrap`: The path of bubblewrap; null runs commands without a sandbox.
    - `readable`: A list of paths besides the system folders that commands may read.
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
    while _wait_for_request(settings["caller"]):
        try:
            request = receive_request(requests)
            send_outcome(outcomes, SupervisedRun(request, setup, requests.fileno()).run())
        except SandboxError as error:
            send_outcome(outcomes, error)
        except (EOFError, CallerGoneError):
            return


def _wait_for_request(caller: int) -> bool:
    """Wait until a request arrives on standard input, or until the caller ends.

    The caller is the process that sends the requests.

    Args:
        caller: The process id of the caller.

    Returns:
        True if a request has arrived, or if standard input has ended. False if the caller has ended.
    """
    poll = select.poll()
    poll.register(sys.stdin, select.POLLIN)
    while not poll.poll(1000):
        if os.getppid() != caller:  # a process that the caller forked may hold the pipe open
            return False
    return True
