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
    ticks, resident = 0, dict[str, int]()
    for pid in pids:
        # The fields follow the name of the program, which may hold anything.
        fields = _read(proc, f"{pid}/stat").rpartition(b")")[2].split()
        if fields:
            ticks += sum(map(int, fields[11:15]))  # user and system time, and those of ended children
            resident[pid] = int(fields[21]) * _PAGE
    memory = sum(resident.values())
    if memory > enough and len(resident) > 1:
        shares = sum(_proportional(proc, pid, whole) for pid, whole in resident.items())
        memory = max(shares, *resident.values())
    return Usage(ticks / _TICK, memory)


def exact_cpu_seconds(proc: int, pids: Sequence[str]) -> float:
    """Return the processor time of processes with one thread, without their ended children, in seconds."""
    return sum(int(_read(proc, f"{pid}/schedstat").partition(b" ")[0] or 0) for pid in pids) / 1e9


def _proportional(proc: int, pid: str, whole: int) -> int:
    """Return the resident memory of a process in bytes; of shared memory, its share.

    A process can hide how much it shares. Then all its resident memory, `whole`, counts.
    """
    for line in _read(proc, f"{pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) << 10
    return whole


def _read(proc: int, name: str) -> bytes:
    """Return the content of a file in /proc; empty if the process has ended."""
    try:
        with os.fdopen(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc), "rb") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""
