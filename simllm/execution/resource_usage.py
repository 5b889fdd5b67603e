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
        memory: Resident memory of all processes together, in bytes. Memory that several processes share
            counts only once if the exact sum was computed (see `measure`). Otherwise, shared memory counts
            once for each process that shares it.
    """

    cpu_seconds: float
    largest: int
    memory: int


def measure(proc: int, pids: Sequence[str], folders: Sequence[int], enough: int) -> Usage:
    """Measure the memory and the processor time of processes.

    The resident memory of all processes can be added up in two ways. The simple sum counts memory several
    times if several processes share it. The exact sum counts shared memory once, but takes the kernel much
    longer. Therefore the exact sum is computed only if the simple sum exceeds `enough`.

    Args:
        proc: The file descriptor of a /proc folder that lists the processes.
        pids: The ids of the processes to measure.
        folders: File descriptors of the sandbox's folders that are kept in memory. The kernel uses some
            memory for each file in them, even for an empty one. This memory is added to the result.
        enough: A number of bytes, such as the memory limit. Up to this number, the simple sum is returned.

    Returns:
        The processor time and the memory of the processes.
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
    """Add up the processor time that the first thread of each given process has used, in seconds.

    The time is exact to nanoseconds. The function `measure` is less exact: it counts clock ticks (often 10
    ms). But only `measure` includes the time of further threads and of ended child processes.

    Args:
        proc: The file descriptor of a /proc folder that lists the processes.
        pids: The ids of the processes.
    """
    return sum(int(_read(proc, f"{pid}/schedstat").partition(b" ")[0] or 0) for pid in pids) / 1e9


def _fields(proc: int, process: str) -> list[bytes]:
    """Read the fields of the file /proc/PID/stat that follow the program's name.

    Args:
        proc: The file descriptor of the folder /proc.
        process: The process id.

    Returns:
        The fields; an empty list if the process has ended.
    """
    # The name is in parentheses, and may itself hold any character.
    return _read(proc, f"{process}/stat").rpartition(b")")[2].split()


def _resident(proc: int, pid: str, fields: list[bytes]) -> int:
    """Return the resident memory of a process in bytes.

    The memory is read from /proc/PID/stat. This file shows no memory if the first thread of the process has
    ended but other threads still run. In this case, the memory is read from the files of the other threads.

    Args:
        proc: The file descriptor of the folder /proc.
        pid: The process id.
        fields: The fields of /proc/PID/stat after the program's name.
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
    """Return the proportional set size of a process: its own memory and its part of shared memory, in bytes.

    If n processes share memory, each of them gets 1/n of this memory.

    Args:
        proc: The file descriptor of the folder /proc.
        pid: The process id.
        whole: The resident memory of the process in bytes, which includes all shared memory. This number is
            returned if the proportional set size cannot be read, for example because the process has ended.
    """
    for line in _read(proc, f"{pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) << 10
    return whole


def _overhead(folder: int) -> int:
    """Estimate how much memory the kernel uses for the files of a file system, besides their content.

    The kernel keeps the name, the size and other data of each file. The estimate is 1024 bytes for each file.

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
