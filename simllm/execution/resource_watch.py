"""The memory and the processor time of the running processes of a sandbox."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Usage:
    """What the processes of a sandbox use at one moment.

    Attributes:
        cpu_seconds: Processor time in seconds, of the ended processes, too.
        memory: Resident memory in bytes; memory that processes share counts once.
    """

    cpu_seconds: float
    memory: int


def measure(proc: int, pids: Sequence[str], enough: int) -> Usage:
    """Measure the memory and the processor time of processes.

    Shared memory is only taken apart if it can matter, because the kernel needs much longer for that.

    Args:
        proc: The file descriptor of a folder /proc in which the processes appear.
        pids: The names of the processes in this folder.
        enough: Bytes of memory from which on shared memory is taken apart.
    """
    ticks, resident = 0, []
    for pid in pids:
        # The fields follow the name of the program, which may hold anything.
        fields = _read(proc, f"{pid}/stat").rpartition(b")")[2].split()
        if fields:
            ticks += sum(map(int, fields[11:15]))  # user and system time, and those of ended children
            resident.append(int(fields[21]) * _PAGE)
    memory = sum(resident)
    if memory > enough and len(resident) > 1:
        memory = max(max(resident), sum(_proportional(proc, pid) for pid in pids))
    return Usage(ticks / _TICK, memory)


def exact_cpu_seconds(proc: int, pids: Sequence[str]) -> float:
    """Return the processor time of processes with one thread, to the nanosecond; ended children are left out."""
    return sum(int((_read(proc, f"{pid}/schedstat").split() or [0])[0]) for pid in pids) / 1e9


def _proportional(proc: int, pid: str) -> int:
    """Return the resident memory of a process in bytes; of shared memory, its share."""
    for line in _read(proc, f"{pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) << 10
    return 0


def _read(proc: int, name: str) -> bytes:
    """Return the content of a file in /proc; empty if the process has ended."""
    try:
        with open(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc), "rb") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""
