"""Processor time and memory of a run's processes, while they run and when they end."""

from __future__ import annotations

import os
import re
import resource
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from simllm.execution.limits import MIB, Limits


@dataclass(frozen=True)
class Ended:
    """Exit status (128 + N after signal N) and resource use of an ended process; memory in bytes."""

    status: int
    cpu_seconds: float
    peak_memory: int


def end_children() -> dict[int, Ended]:
    """Kill all descendants of this process, which must be a subreaper; return them by process id."""
    ended = dict[int, Ended]()
    # Linux makes a subreaper the parent of descendants whose own parents have ended, so none escapes.
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    # A process may start others until it is killed, so the list of children is read again and again.
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
_BUFFERS_OF_A_SOCKET = 212_992  # bytes at most; programs cannot enlarge them (see bubblewrap.py)
_STATE, _TIMES, _RESIDENT = 0, slice(11, 15), 21  # fields in /proc/PID/stat, after the name of the program
# Reading untouched memory maps one page of zeros for all, but takes page tables. Pages may be swapped out.
_NOT_RESIDENT = re.compile(rb"^Vm(?:PTE|Swap):\s+(\d+) kB", re.MULTILINE)
_SOCKETS = re.compile(rb"^sockets: used (\d+)")


class UsageMeter:
    """Processor time (seconds) and peak of the resident memory (bytes) of a run, compared with its limits."""

    def __init__(self, limits: Limits) -> None:
        self.cpu_seconds, self.peak_memory = 0.0, 0
        self._limits = limits
        self._start_seconds, self._next = 0.0, 0.0
        self._last_memory, self._inherited_peak = 0, 0

    def ignore_inherited_peak(self) -> None:
        """Ignore reported peaks up to the peak of this process, from which the command will start."""
        # A forked command starts with the peak of this process; one in a sandbox is a child of bubblewrap.
        self._inherited_peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10

    def begin(self, proc: int, pids: Sequence[str]) -> None:
        """Begin to measure; `proc` is a descriptor of the /proc that lists `pids`."""
        self._start_seconds = _exact_cpu_seconds(proc, pids)
        self._next = time.monotonic() + MEASURING_INTERVAL

    def is_due(self, now: float) -> bool:
        """Return whether it is time for the next measurement; `now` is from `time.monotonic`."""
        return now > self._next

    def measure(self, proc: int, pids: Sequence[str], folders: Sequence[int], begun: float) -> None:
        """Measure the running processes and the sandbox's folders in memory (file descriptors).

        `begun` is the time (of `time.monotonic`) at which the search for the process ids began.
        """
        usage = _measure(proc, pids, folders, self._limits.memory * MIB)
        self.cpu_seconds = max(self.cpu_seconds, usage.cpu_seconds - self._start_seconds)
        # For a moment, a process that starts another one appears twice. So a sum counts only if two
        # measurements in a row reach it.
        self.peak_memory = max(self.peak_memory, usage.largest, min(usage.memory, self._last_memory))
        self._last_memory = usage.memory
        # Measuring takes a fifth of the time at most.
        self._next = begun + 5 * (time.monotonic() - begun) + MEASURING_INTERVAL

    def add_ended(self, process: Ended) -> None:
        """Add what the kernel reports for an ended process and its ended children."""
        self.cpu_seconds = max(self.cpu_seconds, process.cpu_seconds - self._start_seconds)
        if process.peak_memory > self._inherited_peak:
            self.peak_memory = max(self.peak_memory, process.peak_memory)

    def exceeded(self) -> str | None:
        """Return the exceeded limit, "memory" or "time", or None."""
        if self.peak_memory > self._limits.memory * MIB:
            return "memory"
        return "time" if self.cpu_seconds > self._limits.time else None


@dataclass(frozen=True)
class _Usage:
    """Use of all processes at one moment: processor time in seconds, also of ended ones; memory in bytes.

    `largest` is the resident memory of one process. `memory` is that of all, with swapped-out memory and what
    the kernel keeps for them (page tables, files, sockets).
    """

    cpu_seconds: float
    largest: int
    memory: int


def _measure(proc: int, pids: Sequence[str], folders: Sequence[int], enough: int) -> _Usage:
    """Measure processes; shared memory is counted once only if the simple sum exceeds `enough` bytes."""
    ticks, resident, others = 0, dict[str, int](), sum(map(_overhead, folders))
    for pid in pids:
        if fields := _fields(proc, pid):
            ticks += sum(map(int, fields[_TIMES]))  # user and system time, and those of ended children
            resident[pid] = _resident(proc, pid, fields)
            others += sum(map(int, _NOT_RESIDENT.findall(_read(proc, f"{pid}/status")))) << 10
    if folders and (sockets := _SOCKETS.match(_read(proc, f"{pids[0]}/net/sockstat"))):
        others += int(sockets[1]) * _BUFFERS_OF_A_SOCKET
    largest, memory = max(resident.values(), default=0), sum(resident.values())
    # The exact sum counts shared memory once, but takes the kernel much longer.
    if memory > enough and len(resident) > 1:
        memory = sum(_proportional(proc, pid, whole) for pid, whole in resident.items())
    return _Usage(ticks / _TICK, largest, memory + others)


def _exact_cpu_seconds(proc: int, pids: Sequence[str]) -> float:
    """Add up the processor time of the first thread of each process, exact to nanoseconds.

    `_measure` counts clock ticks (often 10 ms each), but also further threads and ended children.
    """
    return sum(int(_read(proc, f"{pid}/schedstat").partition(b" ")[0] or 0) for pid in pids) / 1e9


def _fields(proc: int, process: str) -> list[bytes]:
    """Return the fields of /proc/PID/stat (or of a thread's) after the program's name; [] if it has ended."""
    # The name is in parentheses, and may itself hold any character.
    return _read(proc, f"{process}/stat").rpartition(b")")[2].split()


def _resident(proc: int, pid: str, fields: list[bytes]) -> int:
    """Return the resident memory of a process in bytes."""
    # If only the first thread has ended, the process is a zombie here, and its other threads show the memory.
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
    """Return the proportional set size in bytes (what n processes share counts 1/n), or else `whole`."""
    for line in _read(proc, f"{pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) << 10
    return whole


def _overhead(folder: int) -> int:
    """Estimate the bytes that the kernel keeps for names and sizes of the files of a file system."""
    state = os.fstatvfs(folder)
    return (state.f_files - state.f_ffree) * _BYTES_OF_A_FILE


def _read(proc: int, name: str) -> bytes:
    """Return the content of a file in /proc; b"" if its process has ended or reading is not permitted."""
    try:
        with os.fdopen(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc), "rb") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""
