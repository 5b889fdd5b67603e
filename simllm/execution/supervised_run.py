"""A function that turns the calling process from root into an ordinary user."""

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
from simllm.execution.limits import prlimit_options
from simllm.execution.messages import ENVIRONMENT, Outcome, Request, SandboxError
from simllm.execution.usage import MEASURING_INTERVAL, Ended, UsageMeter, end_children

_FIRST_FREE_USER = 1_500_000_000
_NOBODY = 65534


def drop_root_rights() -> None:
    """Turn this process from root into an ordinary user, because many limits do not apply to root.

    The new user id is derived from the process id, so that no other process or file belongs to this user. If
    the derived id cannot be used, the process becomes the user `nobody`.
    """
    os.setgroups([])
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
    """Write executable files into the working folder of a sandbox.

    Args:
        box: The file descriptor of the folder.
        files: The content of each file, by its relative path. Missing subfolders are made.

    Raises:
        OSError: A file cannot be written, for example because the folder is full.
    """
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
    """Read the files of a sandbox's working folder whose paths match a pattern.

    All processes of the sandbox must have ended, so that no process changes the files during the reading.

    Args:
        box: The file descriptor of the folder.
        patterns: Patterns for relative paths, as in `fnmatch`. `*` also matches `/`.
        most: The largest number of bytes to read from all files together. Further content is cut off. This
            limit is needed although the folder has a limited size: a sparse file can be larger than the
            space that it uses.

    Returns:
        The content of each file by its relative path, sorted by path.
    """
    found = {}
    for number, (name, folder, entry) in enumerate(_entries(box, "", _DEEPEST)):
        if number == _MOST_ENTRIES:
            break
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            with os.fdopen(os.open(entry, _READ, dir_fd=folder), "rb") as file:
                found[name] = file.read(most)
                most -= len(found[name])
    return dict(sorted(found.items()))


def _entries(folder: int, prefix: str, levels: int) -> Iterator[tuple[str, int, str]]:
    """Find the readable regular files in a folder and its subfolders.

    Args:
        folder: The file descriptor of the folder.
        prefix: The relative path of the folder, with a slash at its end; "" for the top folder.
        levels: The number of levels of subfolders to search.

    Yields:
        The file's relative path, the file descriptor of the folder that directly contains the file, and the
        file's name.
    """
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
_MIB = 1 << 20


@dataclass(frozen=True)
class Setup:
    """Settings for all runs of a supervisor, which is a process that runs commands in a sandbox.

    Attributes:
        bwrap: The path of bubblewrap; None runs commands without a sandbox.
        readable: Paths besides the system folders that a command may read.
    """

    bwrap: str | None
    readable: Sequence[str] = ()


class CallerGoneError(Exception):
    """Error that stops a run, because the process that requested the run has ended."""


class SupervisedRun:
    """One run of a command, controlled by this process, the supervisor.

    Args:
        request: The command, its files and limits.
        setup: The settings for all runs.
        caller: The file descriptor of a pipe from the process that requested the run. The pipe is
            disconnected when that process ends; then the run is stopped.
    """

    def __init__(self, request: Request, setup: Setup, caller: int) -> None:
        self.request, self.setup, self.caller = request, setup, caller
        self.limits = request.limits
        self.kept: dict[int, bytearray] = {}  # the output by file descriptor
        self.exceeded: str | None = None
        self.meter = UsageMeter(request.limits)

    def run(self) -> Outcome:
        """Run the command until it ends or exceeds a limit.

        Returns:
            The exit status, the output, the resource use, and the content of the files that the request asked
            to keep.

        Raises:
            SandboxError: The command could not be started, or the sandbox failed during the run.
            CallerGoneError: The process that requested the run ended before the command did.
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
        self._read_rest()
        files = read_files(self.box, self.request.keep, self.limits.disk * _MIB)
        return self._outcome(seconds, usage, files)

    def _start(self) -> None:
        """Start the sandbox, write the files into its working folder, and start the command in the sandbox.

        The sandbox first starts a shell, which waits until it can read a line from a socket (called the
        gate). This method writes the files and then sends the line. The shell then replaces its own process
        by the command (with `exec`).
        """
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
        """Start a shell, which will run the command when the supervisor sends a line.

        The shell waits because the supervisor must first write the command's files. After the line, the shell
        replaces its own process by the command (with `exec`). If the settings have the path of bubblewrap,
        the shell runs in a new sandbox. Otherwise, it runs without a sandbox.

        Args:
            descriptors: File descriptors that the new process inherits, such as the pipe for standard output.
                In the new process, they get the numbers 0, 1, 2 and so on, in this order.

        Returns:
            The process id of bubblewrap, or of the shell if there is no sandbox.
        """
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
        """Collect the command's output and measure its resource use.

        The method returns when the command ends or exceeds a limit.

        Args:
            begun: The start time of the command, in seconds on the clock of `time.monotonic`.

        Raises:
            CallerGoneError: The process that requested the run has ended.
        """
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
        """Return the ids of all processes in the sandbox: names in /proc, and the path of the hidden one.

        Without a sandbox, return only the id of the command's first process.
        """
        if self.folder is not None:
            return [str(self.child)]
        others = [name for name in os.listdir(self.proc) if name.isdigit() and name != "1"]  # noqa: PTH208
        return [self.first, *others]

    def _read(self, descriptor: int) -> bool:
        """Read the next part of the command's output from a pipe, and store it.

        Output beyond the limit `Limits.output` is dropped, and the limit is recorded as exceeded.

        Args:
            descriptor: The file descriptor of the pipe from standard output or standard error.

        Returns:
            Whether a part was read; False at the end of the pipe.
        """
        part = os.read(descriptor, _PART)
        kept = self.kept[descriptor]
        free = self.limits.output - len(kept)
        kept += part[:free]
        if len(part) > free:
            self.exceeded = self.exceeded or "output"
        return bool(part)

    def _read_rest(self) -> None:
        """Read the rest of the command's standard output and standard error.

        All processes that could write must have ended. Otherwise, the reading could wait forever.
        """
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
        """Return the standard error of the run as text, for use in an error message.

        All processes of the run are killed first, so that they write nothing more. If standard error is
        empty, the text is "no message".
        """
        end_children()
        self._read_rest()
        return self.kept[self.errors].decode(errors="replace").strip() or "no message"

    def _open(self, folder: str) -> int:
        return self._keep_open(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))

    def _keep_open(self, descriptor: int) -> int:
        """Register a file descriptor to be closed at the end of the run.

        Returns:
            The same file descriptor.
        """
        self.held.callback(os.close, descriptor)
        return descriptor
