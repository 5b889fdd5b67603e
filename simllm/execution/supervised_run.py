"""One run of a command, from the start of its sandbox to its outcome, as a supervisor controls it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from simllm.execution.bubblewrap import SIZED_FOLDERS, bwrap_command, seccomp_program
from simllm.execution.limits import MIB, prlimit_options
from simllm.execution.messages import ENVIRONMENT, Outcome, Request, SandboxError
from simllm.execution.usage import MEASURING_INTERVAL, Ended, UsageMeter, end_children

_FIRST_FREE_USER = 1_500_000_000
_NOBODY = 65534


def drop_root_rights() -> None:
    """Turn this process from root into a user who owns nothing, because many limits do not apply to root."""
    os.setgroups([])
    # No other process or file belongs to a user derived from the process id.
    for user in (_FIRST_FREE_USER + os.getpid(), _NOBODY):
        try:
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            return
        except OSError:
            continue
    raise SystemExit("simllm: the sandbox cannot give up the rights of root")


_DEEPEST = 32  # levels of folders that are searched
_MOST_ENTRIES = 100_000  # files that are compared with the patterns
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not block the reader
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_FOLDER = _READ | os.O_DIRECTORY


def write_files(box: int, files: Mapping[str, bytes]) -> None:
    """Write executable files into the working folder (a file descriptor), with missing subfolders."""
    for name, content in files.items():
        path = PurePosixPath(name)
        for parent in reversed(path.parents[:-1]):
            if not _exists(box, parent):
                os.mkdir(parent, dir_fd=box)
        with os.fdopen(os.open(path, _WRITE, 0o755, dir_fd=box), "wb") as file:
            file.write(content)


def _exists(box: int, path: PurePosixPath) -> bool:
    try:
        os.stat(path, dir_fd=box)
    except FileNotFoundError:
        return False
    return True


def read_files(box: int, patterns: Sequence[str], most: int) -> dict[str, bytes]:
    """Read files whose relative paths match an `fnmatch` pattern, sorted, up to `most` bytes in all.

    All processes of the sandbox must have ended, so that none changes the files meanwhile.
    """
    found = {}
    for number, (name, folder, entry) in enumerate(_entries(box, "", _DEEPEST)):
        if number == _MOST_ENTRIES:
            break
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            with os.fdopen(os.open(entry, _READ, dir_fd=folder), "rb") as file:
                # The folder's size is no bound: a sparse file can be larger than the space that it uses.
                found[name] = file.read(most)
                most -= len(found[name])
    return dict(sorted(found.items()))


def _entries(folder: int, prefix: str, levels: int) -> Iterator[tuple[str, int, str]]:
    """Yield relative path, descriptor of the containing folder, and name of each readable regular file."""
    for name in sorted(os.listdir(folder)):
        try:
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISREG(mode) and mode & stat.S_IRUSR:
                yield prefix + name, folder, name
            elif stat.S_ISDIR(mode) and levels:
                inner = os.open(name, _FOLDER, dir_fd=folder)
                try:
                    yield from _entries(inner, f"{prefix}{name}/", levels - 1)
                finally:
                    os.close(inner)
        except PermissionError:  # a folder that the program made unreadable
            continue


# File descriptors of the started process. The supervisor itself uses none of them but the first three.
FIXED_DESCRIPTORS = range(6)
STDIN, STDOUT, STDERR, GATE, STATUS, SECCOMP = FIXED_DESCRIPTORS
# The shell reports that it runs, waits until the files are written, and becomes the program. If the
# supervisor is killed, the shell reads the end of the stream, and the program never starts.
_STUB = f'cd "$HOME" && echo >&{GATE} && read -r go <&{GATE} && exec prlimit "$@" {GATE}>&-'
_SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK
_START_TIMEOUT = 60  # seconds
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_PART = 1 << 16  # bytes


@dataclass(frozen=True)
class Setup:
    """Settings for all runs of a supervisor, as in `SupervisorPool`."""

    bwrap: str | None
    readable: Sequence[str] = ()


class CallerGoneError(Exception):
    """The caller has ended, so that the run must stop."""


class SupervisedRun:
    """One run of a command; `caller` is a pipe whose other end closes when the caller ends."""

    def __init__(self, request: Request, setup: Setup, caller: int) -> None:
        self.request, self.setup, self.caller = request, setup, caller
        self.limits = request.limits
        self.kept: dict[int, bytearray] = {}  # the output by file descriptor
        self.exceeded: str | None = None
        self.meter = UsageMeter(request.limits)

    def run(self) -> Outcome:
        """Run the command until it ends or exceeds a limit.

        Raises:
            SandboxError: The command could not be started, or the sandbox failed during the run.
            CallerGoneError: The caller ended before the command did.
        """
        with contextlib.ExitStack() as self.held:
            try:
                return self._run()
            except OSError as error:
                raise SandboxError(f"the sandbox failed: {error}") from error

    def _run(self) -> Outcome:
        try:
            self._start()
            begun = time.monotonic()
            self._watch(begun)
            seconds = time.monotonic() - begun
        finally:
            usage = end_children()
        # Everything that could write has ended, so that the pipes have ends.
        self._read_rest()
        files = read_files(self.box, self.request.keep, self.limits.disk * MIB)
        return self._outcome(seconds, usage, files)

    def _start(self) -> None:
        """Start a waiting shell in the sandbox, write the files, and let the shell become the command."""
        # Sealed, so that the command cannot enlarge the file and keep memory in it that no limit counts.
        stdin = self._keep_open(os.memfd_create("stdin", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
        with os.fdopen(os.dup(stdin), "wb") as file:
            file.write(self.request.stdin)
        os.lseek(stdin, 0, os.SEEK_SET)
        fcntl.fcntl(stdin, fcntl.F_ADD_SEALS, _SEALS)
        seccomp = self._keep_open(os.memfd_create("seccomp"))
        os.write(seccomp, seccomp_program())
        os.lseek(seccomp, 0, os.SEEK_SET)
        self.out, out = os.pipe()
        self.errors, errors = os.pipe()
        self.status, status = os.pipe()
        gate, inner_gate = socket.socketpair()
        self.held.enter_context(gate)
        for descriptor in (self.out, self.errors, self.status):
            self._keep_open(descriptor)
        self.kept = {self.out: bytearray(), self.errors: bytearray()}
        try:
            self.child = self._spawn((stdin, out, errors, inner_gate.fileno(), status, seccomp))
        finally:
            inner_gate.close()
            for descriptor in (out, errors, status):
                os.close(descriptor)
        self.exited = self._keep_open(os.pidfd_open(self.child))
        # The working folder exists only once the shell runs, and the command must find its files there.
        gate.settimeout(_START_TIMEOUT)
        if not gate.recv(1):
            raise SandboxError(f"the sandbox does not start: {self._message()}")
        self._open_folders()
        try:
            write_files(self.box, self.request.files)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise SandboxError(f"the files do not fit into {self.limits.disk} MiB") from None
        self.meter.begin(self.proc, self._pids())
        gate.send(b"\n")

    def _spawn(self, descriptors: Sequence[int]) -> int:
        """Start bubblewrap, or the bare shell, with these descriptors as 0, 1 and so on; return its id."""
        options = prlimit_options(self.limits, count_processes=self.setup.bwrap is not None)
        program = ["/bin/sh", "-c", _STUB, "sh", *options, "--", *self.request.argv]
        environment: Mapping[str, str] = {}  # the environment of bwrap can be seen in /proc/1/environ
        self.folder = None
        if self.setup.bwrap:
            command = bwrap_command(self.setup.bwrap, self.limits, self.setup.readable, STATUS, SECCOMP)
            program = [*command, *program]
        else:
            self.folder = tempfile.mkdtemp(prefix="simllm-unsafe-")
            self.held.callback(shutil.rmtree, self.folder, ignore_errors=True)
            environment = ENVIRONMENT | {"HOME": self.folder}
            # There is no bubblewrap to write a status or to read a filter.
            descriptors = descriptors[: GATE + 1]
            self.meter.ignore_inherited_peak()
        actions = [(os.POSIX_SPAWN_DUP2, descriptor, number) for number, descriptor in enumerate(descriptors)]
        return os.posix_spawn(
            program[0], program, environment, file_actions=actions, setpgroup=0, setsigdef=_IGNORED_BY_PYTHON
        )

    def _open_folders(self) -> None:
        """Open the working folder of the command, and the /proc folder that lists its processes."""
        self.sized = list[int]()
        if self.folder is not None:
            self.box, self.proc = self._open(self.folder), self._open("/proc")
            return
        self.kept_status = os.read(self.status, _PART)
        self.first = f"/proc/{json.loads(self.kept_status.splitlines()[0])['child-pid']}"
        self.sized = [self._open(f"{self.first}/root{folder}") for folder in SIZED_FOLDERS]
        self.box, self.proc = self.sized[0], self._open(f"{self.first}/root/proc")

    def _watch(self, begun: float) -> None:
        """Collect output and measure resource use until the command ends or exceeds a limit."""
        poll = select.poll()
        for descriptor in (*self.kept, self.exited):
            poll.register(descriptor, select.POLLIN)
        poll.register(self.caller, 0)  # only its end is reported
        while not self.exceeded:
            for descriptor, event in poll.poll(1000 * MEASURING_INTERVAL):
                if descriptor == self.caller:
                    raise CallerGoneError
                if descriptor == self.exited:
                    return
                if event & select.POLLIN:
                    self._read(descriptor)
                else:
                    poll.unregister(descriptor)
            now = time.monotonic()
            if now - begun > self.limits.wall_time:
                self.exceeded = self.exceeded or "time"
            elif self.meter.is_due(now):
                self.meter.measure(self.proc, self._pids(), self.sized, now)
                self.exceeded = self.exceeded or self.meter.exceeded()

    def _pids(self) -> list[str]:
        """Return all processes of the sandbox (names in /proc, and the path of the hidden one).

        Without a sandbox, only the command's first process is known.
        """
        if self.folder is not None:
            return [str(self.child)]
        others = [name for name in os.listdir(self.proc) if name.isdigit() and name != "1"]  # noqa: PTH208
        return [self.first, *others]

    def _read(self, descriptor: int) -> bool:
        """Read a part of the output and keep it up to the limit; return False at the end of the pipe."""
        part = os.read(descriptor, _PART)
        kept = self.kept[descriptor]
        free = self.limits.output - len(kept)
        kept += part[:free]
        if len(part) > free:
            self.exceeded = self.exceeded or "output"
        return bool(part)

    def _read_rest(self) -> None:
        """Read the rest of the output; if a process could still write, this could wait forever."""
        for descriptor in self.kept:
            while self._read(descriptor):
                pass

    def _outcome(self, seconds: float, usage: Mapping[int, Ended], files: dict[str, bytes]) -> Outcome:
        if self.folder is None:
            while part := os.read(self.status, _PART):
                self.kept_status += part
            lines = [json.loads(line) for line in self.kept_status.splitlines()]
            status = next((line["exit-code"] for line in lines if "exit-code" in line), None)
            measured = lines[0]["child-pid"]  # bwrap's inner process, the parent of the program
        else:
            status, measured = usage[self.child].status, self.child
        # This process killed the run, whatever bubblewrap reports of it.
        if self.exceeded:
            status = 128 + signal.SIGKILL
        elif status is None:
            raise SandboxError(f"bwrap ended before the program: {self._message()}")
        if measured in usage:
            self.meter.add_ended(usage[measured])
        return Outcome(
            status,
            self.exceeded or self.meter.exceeded(),
            bytes(self.kept[self.out]),
            bytes(self.kept[self.errors]),
            self.meter.cpu_seconds,
            seconds,
            self.meter.peak_memory,
            files,
        )

    def _message(self) -> str:
        """Kill the run, and return its standard error for an error message."""
        end_children()
        self._read_rest()
        return self.kept[self.errors].decode(errors="replace").strip() or "no message"

    def _open(self, folder: str) -> int:
        return self._keep_open(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))

    def _keep_open(self, descriptor: int) -> int:
        """Return the descriptor, which is closed at the end of the run."""
        self.held.callback(os.close, descriptor)
        return descriptor
