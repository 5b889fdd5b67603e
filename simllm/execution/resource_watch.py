"""Measurement of the memory and processor time that the processes of a sandbox use."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_BYTES_OF_A_FILE = 1024  # memory of the kernel for each file in a folder in memory, besides its content
_STATE, _TIMES, _RESIDENT = 0, slice(11, 15), 21  # fields in /proc/PID/stat, after the name of the program


@dataclass(frozen=True)
class Usage:
    """Memory and processor time of all processes of a sandbox at one moment.

    Attributes:
        cpu_seconds: Processor time in seconds, including that of ended processes.
        largest: Resident memory of the process that uses the most memory, in bytes.
        memory: Resident memory of all processes together, in bytes. Memory that processes share counts once
            if it was measured exactly (see `measure`); otherwise it counts for each process.
    """

    cpu_seconds: float
    largest: int
    memory: int


def measure(proc: int, pids: Sequence[str], folders: Sequence[int], enough: int) -> Usage:
    """Measure the memory and the processor time of processes.

    Two sums of the processes' resident memory are possible. The simple sum counts memory several times if
    several processes share it. The exact sum counts shared memory once, but takes the kernel much longer.
    Therefore the exact sum is computed only if the simple sum exceeds `enough`.

    Args:
        proc: The file descriptor of a /proc folder that lists the processes.
        pids: The ids of the processes to measure.
        folders: File descriptors of folders in memory. The size of their files is limited, but the number of
            files is not. Therefore the kernel's memory for each file is added to the result.
        enough: The largest simple sum, in bytes, that needs no exact sum.

    Returns:
        The processor time and the memory of the processes. The memory includes the kernel's memory for files.
    """
    ticks, resident = 0, dict[str, int]()
    for pid in pids:
        if fields := _fields(proc, pid):
            ticks += sum(map(int, fields[_TIMES]))  # user and system time, and those of ended children
            resident[pid] = _resident(proc, pid, fields)
    largest, memory = max(resident.values(), default=0), sum(resident.values())
    if memory > enough and len(resident) > 1:
        memory = sum(_proportional(proc, pid, whole) for pid, whole in resident.items())
    return Usage(ticks / _TICK, largest, memory + sum(map(_overhead, folders)))


def exact_cpu_seconds(proc: int, pids: Sequence[str]) -> float:
    """Return the total processor time of some processes in seconds, counting only their first threads.

    The time is read in nanoseconds, whereas `measure` reads it in clock ticks. Unlike in `measure`, the time
    of other threads and of ended child processes is not included.

    Args:
        proc: The file descriptor of a /proc folder that lists the processes.
        pids: The ids of the processes.
    """
    return sum(int(_read(proc, f"{pid}/schedstat").partition(b" ")[0] or 0) for pid in pids) / 1e9


def _fields(proc: int, process: str) -> list[bytes]:
    """Return the fields of /proc/PID/stat after the program's name; an empty list if the process ended."""
    # The name is in parentheses, and may itself hold any character.
    return _read(proc, f"{process}/stat").rpartition(b")")[2].split()


def _resident(proc: int, pid: str, fields: list[bytes]) -> int:
    """Return the resident memory of a process in bytes.

    If the first thread has ended but others run, /proc/PID/stat shows no memory. Then the memory is read from
    the other threads.

    Args:
        proc: The file descriptor of the folder /proc.
        pid: The process id.
        fields: The fields of /proc/PID/stat, from `_fields`.
    """
    if fields[_STATE] != b"Z":
        return int(fields[_RESIDENT]) * _PAGE
    try:
        folder = os.open(f"{pid}/task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=proc)
    except (FileNotFoundError, ProcessLookupError):
        return 0
    try:
        threads = [_fields(folder, name) for name in os.listdir(folder)]  # noqa: PTH208
    finally:
        os.close(folder)
    return max((int(thread[_RESIDENT]) for thread in threads if thread), default=0) * _PAGE


def _proportional(proc: int, pid: str, whole: int) -> int:
    """Return the memory of a process in bytes; memory that n processes share counts 1/n for each of them.

    Args:
        proc: The file descriptor of the folder /proc.
        pid: The process id.
        whole: The resident memory of the process in bytes. It is returned if the shared memory cannot be
            read, for example because the process hides it.
    """
    for line in _read(proc, f"{pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) << 10
    return whole


def _overhead(folder: int) -> int:
    """Estimate the kernel's memory for the files of a file system: names and other data besides the content.

    Args:
        folder: The file descriptor of a folder in the file system.

    Returns:
        The memory in bytes.
    """
    state = os.fstatvfs(folder)
    return (state.f_files - state.f_ffree) * _BYTES_OF_A_FILE


def _read(proc: int, name: str) -> bytes:
    """Return the content of a file in /proc; b"" if its process has ended or reading is not permitted."""
    try:
        with os.fdopen(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc), "rb") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""
