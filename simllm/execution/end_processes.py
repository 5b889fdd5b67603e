"""The end of all processes below this one."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Ended:
    """An ended process: its exit status, processor time in seconds and peak memory in bytes."""

    status: int
    cpu_seconds: float
    peak_memory: int


def end_children() -> dict[int, Ended]:
    """Kill all processes below this one, and wait until none is left.

    This process must be a subreaper, so that it adopts processes whose parents end.

    Returns:
        The ended children, by process id.
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
