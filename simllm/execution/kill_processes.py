"""Killing of all child processes of the calling process, and of all their descendants."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Ended:
    """Exit status and resource use of an ended process.

    Attributes:
        status: The exit status; 128 + N if signal N ended the process.
        cpu_seconds: Processor time in seconds.
        peak_memory: Peak of the resident memory in bytes.
    """

    status: int
    cpu_seconds: float
    peak_memory: int


def end_children() -> dict[int, Ended]:
    """Kill all child processes of this process and their descendants, and wait until all have ended.

    The calling process must be a subreaper: Linux then makes it the parent of descendants whose own parents
    have ended.

    Returns:
        Status and resource use of each ended process, by process id.
    """
    ended = dict[int, Ended]()
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while True:
        for child in children.read_text().split():
            os.kill(int(child), signal.SIGKILL)
        try:
            pid, status, usage = os.wait4(-1, 0)
        except ChildProcessError:
            return ended
        code = os.waitstatus_to_exitcode(status)
        seconds = usage.ru_utime + usage.ru_stime
        ended[pid] = Ended(code if code >= 0 else 128 - code, seconds, usage.ru_maxrss << 10)
