"""The memory and the processor time of the running processes of a sandbox."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_BYTES_OF_A_FILE = 1024  # that the kernel needs for a file in memory, besides its content
_STATE, _TIMES, _RESIDENT = 0, slice(11, 15), 21  # fields in /proc/PID/stat, after the name of the program


@dataclass(frozen=True)
class Usage:
    """What the processes of a sandbox use at one moment.

    Attributes:
        cpu_seconds: Processor time in seconds, of the ended processes, too.
        largest: Resident memory of the largest process, in bytes.
        memory: Resident memory of all processes in bytes; memory that processes share counts once.
    """

    cpu_seconds: float
    largest: int
    memory: int


def measure(proc: int, pids: Sequence[str], folders: Sequence[int], enough: int) -> Usage:
    """Measure the memory and the processor time of processes.

    Shared memory is only taken apart if it can matter, because the kernel needs much longer for that.

    Args:
        proc: The file descriptor of a folder /proc in which the processes appear.
        pids: The names of the processes in this folder.
        folders: File descriptors of folders in memory. The content of their files has a limit, but not their
            number, which counts as memory.
        enough: Bytes of memory from which on shared memory is taken apart.
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
    """Return the processor time of processes with one thread, without their ended children, in seconds."""
    return sum(int(_read(proc, f"{pid}/schedstat").partition(b" ")[0] or 0) for pid in pids) / 1e9


def _fields(proc: int, process: str) -> list[bytes]:
    """Return the fields of /proc/PID/stat after the program's name; none if the process has ended."""
    # The name is in parentheses, and may itself hold any character.
    return _read(proc, f"{process}/stat").rpartition(b")")[2].split()


def _resident(proc: int, pid: str, fields: list[bytes]) -> int:
    """Return the resident memory of a process in bytes, also if only its first thread has ended."""
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
    """Return the resident memory of a process in bytes; of shared memory, its share.

    A process can hide how much it shares. Then all its resident memory, `whole`, counts.
    """
    for line in _read(proc, f"{pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) << 10
    return whole


def _overhead(folder: int) -> int:
    """Return the memory that the kernel needs for the files of a file system, without their content."""
    state = os.fstatvfs(folder)
    return (state.f_files - state.f_ffree) * _BYTES_OF_A_FILE


def _read(proc: int, name: str) -> bytes:
    """Return the content of a file in /proc; empty if the process has ended."""
    try:
        with os.fdopen(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc), "rb") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""
