"""Killing of all child processes of the calling process, and of all their descendants."""

from __future__ import annotations

import os
import re
import resource
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from simllm.execution.limits import Limits


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


MEASURING_INTERVAL = 0.01  # seconds between two measurements
_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_BYTES_OF_A_FILE = 1024  # memory of the kernel for each file in a folder in memory, besides its content
_BUFFERS_OF_A_SOCKET = 212_992  # bytes at most; programs cannot enlarge them (see syscall_filter.py)
_STATE, _TIMES, _RESIDENT = 0, slice(11, 15), 21  # fields in /proc/PID/stat, after the name of the program
# Reading untouched memory maps one page of zeros for all, but takes page tables. Pages may be swapped out.
_NOT_RESIDENT = re.compile(rb"^Vm(?:PTE|Swap):\s+(\d+) kB", re.MULTILINE)
_SOCKETS = re.compile(rb"^sockets: used (\d+)")
_MIB = 1 << 20


class UsageMeter:
    """Meter of the processor time and the peak memory of a command, which compares both with their limits.

    Args:
        limits: The limits of the command.

    Attributes:
        cpu_seconds: Processor time of all processes together, in seconds.
        peak_memory: Peak of the resident memory in bytes.
    """

    def __init__(self, limits: Limits) -> None:
        self.cpu_seconds, self.peak_memory = 0.0, 0
        self._limits = limits
        self._start_seconds, self._next = 0.0, 0.0
        self._last_memory, self._inherited_peak = 0, 0

    def ignore_inherited_peak(self) -> None:
        """Record the peak memory of this process, so that it is not taken for the peak of a command.

        The kernel reports the peak memory of a command. If this process starts the command directly, the
        reported peak is at least the peak of this process. Call this method before a direct start. Then
        `add_ended` ignores reported peaks that do not exceed the recorded peak. The call is not needed if
        bubblewrap starts the command in a sandbox.
        """
        self._inherited_peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10

    def begin(self, proc: int, pids: Sequence[str]) -> None:
        """Begin to measure processor time and memory; processor time before this call does not count.

        Args:
            proc: The file descriptor of a /proc folder that lists the processes.
            pids: The ids of the processes of the sandbox.
        """
        self._start_seconds = _exact_cpu_seconds(proc, pids)
        self._next = time.monotonic() + MEASURING_INTERVAL

    def is_due(self, now: float) -> bool:
        """Return whether the time for the next measurement has come.

        Args:
            now: The time in seconds, on the clock of `time.monotonic`.
        """
        return now > self._next

    def measure(self, proc: int, pids: Sequence[str], folders: Sequence[int], begun: float) -> None:
        """Measure the running processes, and update `cpu_seconds` and `peak_memory`.

        The method also sets the time of the next measurement. Searching for the processes and measuring them
        takes a fifth of the time at most: the longer it takes, the later the next measurement is due.

        Args:
            proc: The file descriptor of a /proc folder that lists the processes.
            pids: The ids of the processes to measure.
            folders: File descriptors of the sandbox's folders that are kept in memory. The kernel needs some
                memory for each file in these folders. It is added to the memory of the processes.
            begun: The time in seconds at which the caller began to search for the process ids, on the clock
                of `time.monotonic`.
        """
        usage = _measure(proc, pids, folders, self._limits.memory * _MIB)
        self.cpu_seconds = max(self.cpu_seconds, usage.cpu_seconds - self._start_seconds)
        # For a moment, a process that starts another one appears twice. So a sum counts only if two
        # measurements in a row reach it.
        self.peak_memory = max(self.peak_memory, usage.largest, min(usage.memory, self._last_memory))
        self._last_memory = usage.memory
        # Measuring takes a fifth of the time at most.
        self._next = begun + 5 * (time.monotonic() - begun) + MEASURING_INTERVAL

    def add_ended(self, process: Ended) -> None:
        """Update the processor time and the peak memory of the run after a process has ended.

        Args:
            process: Processor time and peak memory of the process and its ended children, as the kernel
                reports them.
        """
        self.cpu_seconds = max(self.cpu_seconds, process.cpu_seconds - self._start_seconds)
        if process.peak_memory > self._inherited_peak:
            self.peak_memory = max(self.peak_memory, process.peak_memory)

    def exceeded(self) -> str | None:
        """Return the limit that the run has exceeded: "memory" or "time"; None if it exceeded neither."""
        if self.peak_memory > self._limits.memory * _MIB:
            return "memory"
        return "time" if self.cpu_seconds > self._limits.time else None


@dataclass(frozen=True)
class _Usage:
    """Memory and processor time of all processes of a sandbox at one moment.

    Attributes:
        cpu_seconds: Processor time in seconds, including that of ended processes.
        largest: Resident memory of the process that uses the most memory, in bytes.
        memory: Resident memory of all processes together, in bytes, with swapped-out memory, and memory that
            the kernel keeps for them (page tables, files, sockets). Memory that several processes share
            counts only once if the exact sum was computed (see `_measure`). Otherwise, shared memory counts
            once for each process that shares it.
    """

    cpu_seconds: float
    largest: int
    memory: int


def _measure(proc: int, pids: Sequence[str], folders: Sequence[int], enough: int) -> _Usage:
    """Measure the memory and the processor time of processes.

    The resident memory of all processes can be added up in two ways. The simple sum counts memory several
    times if several processes share it. The exact sum counts shared memory once, but takes the kernel much
    longer. Therefore the exact sum is computed only if the simple sum exceeds `enough`.

    Args:
        proc: The file descriptor of a /proc folder that lists the processes.
        pids: The ids of the processes to measure.
        folders: File descriptors of the sandbox's folders that are kept in memory. The kernel uses some
            memory for each file in them, even for an empty one. This memory is added to the result, and so
            is that of page tables and sockets. Without a sandbox, there are no such folders.
        enough: A number of bytes, such as the memory limit. Up to this number, the simple sum is returned.

    Returns:
        The processor time and the memory of the processes.
    """
    ticks, resident, others = 0, dict[str, int](), sum(map(_overhead, folders))
    for pid in pids:
        if fields := _fields(proc, pid):
            ticks += sum(map(int, fields[_TIMES]))  # user and system time, and those of ended children
            resident[pid] = _resident(proc, pid, fields)
            others += sum(map(int, _NOT_RESIDENT.findall(_read(proc, f"{pid}/status")))) << 10
    if folders and (sockets := _SOCKETS.match(_read(proc, f"{pids[0]}/net/sockstat"))):
        others += int(sockets[1]) * _BUFFERS_OF_A_SOCKET
    largest, memory = max(resident.values(), default=0), sum(resident.values())
    if memory > enough and len(resident) > 1:
        memory = sum(_proportional(proc, pid, whole) for pid, whole in resident.items())
    return _Usage(ticks / _TICK, largest, memory + others)


def _exact_cpu_seconds(proc: int, pids: Sequence[str]) -> float:
    """Add up the processor time of the first thread of each process, in seconds, exact to nanoseconds.

    The time of further threads and of ended child processes is left out. `_measure` includes their time, but
    is less exact, because it counts clock ticks (often 10 ms each).

    Args:
        proc: The file descriptor of a /proc folder that lists the processes.
        pids: The ids of the processes.
    """
    return sum(int(_read(proc, f"{pid}/schedstat").partition(b" ")[0] or 0) for pid in pids) / 1e9


def _fields(proc: int, process: str) -> list[bytes]:
    """Read the fields of the file /proc/PID/stat that follow the program's name.

    Args:
        proc: The file descriptor of the folder /proc, or of /proc/PID/task for the threads of a process.
        process: The id of the process or thread.

    Returns:
        The fields; an empty list if the process or thread has ended.
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
    """Return the content of a file in /proc; b"" if its process has ended or reading is not permitted.

    Args:
        proc: The file descriptor of the folder /proc, or of /proc/PID/task.
        name: The path of the file relative to this folder, such as "1234/stat".
    """
    try:
        with os.fdopen(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc), "rb") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""
