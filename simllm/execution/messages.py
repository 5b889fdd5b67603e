"""The environment variables of programs in the sandbox: the search path, the working folder and others."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath
from typing import IO, Any

from simllm.errors import InputError
from simllm.execution.limits import Limits

BOX = "/box"  # the working folder inside the sandbox
SEARCH_PATH = "/usr/bin:/bin:/usr/local/bin"
ENVIRONMENT = {
    "PATH": SEARCH_PATH,
    "HOME": BOX,
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",  # Python's sets print in the same order in every run
    "PYTHONINTMAXSTRDIGITS": "0",  # Python before 3.11 converts integers of more than 4,300 digits
    "OMP_NUM_THREADS": "1",  # libraries such as NumPy's start a thread for each processor, beyond the limit
}


class SandboxError(InputError):
    """Error for a failure of the sandbox itself. It says nothing about the program that should have run."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a command that ran in the sandbox.

    Attributes:
        status: The exit status; 128 + N if signal N ended the command, as in a shell.
        exceeded: The limit that the run exceeded: "time", "memory" or "output"; None if it exceeded none.
        stdout: Standard output, cut off at the limit.
        stderr: Standard error, cut off at the limit.
        cpu_seconds: Processor time of all processes, in seconds.
        wall_seconds: Time from start to end, in seconds.
        peak_memory: Peak of the resident memory in bytes.
        files: The content of the files in the working folder that the request asked to keep, by relative
            path. Their total size is at most the disk limit.
    """

    status: int
    exceeded: str | None
    stdout: bytes
    stderr: bytes
    cpu_seconds: float
    wall_seconds: float
    peak_memory: int
    files: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def succeeded(self) -> bool:
        """True if the command exceeded no limit and ended with status 0."""
        return self.status == 0 and self.exceeded is None


@dataclass(frozen=True)
class Request:
    """A request to run a command.

    Attributes:
        argv: The program and its arguments.
        files: The content of each file to write into the working folder before the run, by relative path.
        stdin: The bytes of standard input.
        limits: The limits of the run.
        keep: Patterns for relative paths, as in `fnmatch`. After the run, matching files in the working
            folder are read; their content becomes a part of the outcome.
    """

    argv: Sequence[str]
    files: Mapping[str, bytes]
    stdin: bytes
    limits: Limits
    keep: Sequence[str]

    def __post_init__(self) -> None:
        """Check that the paths of the request's files lie inside the working folder of the command.

        Raises:
            InputError: A path is empty, absolute, or contains ".." or a NUL character.
        """
        for name in self.files:
            path = PurePosixPath(name)
            if path.is_absolute() or not path.parts or ".." in path.parts or "\0" in name:
                raise InputError(f"{name!r}: expected a path inside the working folder")


_LENGTH = struct.Struct("!Q")


def send_request(stream: IO[bytes], request: Request) -> None:
    """Write a request to a pipe; the request asks the process at the other end to run a command."""
    header = {
        "argv": list(request.argv),
        "files": list(request.files),
        "limits": asdict(request.limits),
        "keep": list(request.keep),
    }
    _send(stream, header, [request.stdin, *request.files.values()])


def receive_request(stream: IO[bytes]) -> Request:
    """Read a request from a pipe; the request asks this process to run a command.

    Raises:
        EOFError: The pipe has ended.
    """
    header, (stdin, *contents) = _receive(stream)
    files = dict(zip(header["files"], contents, strict=True))
    return Request(header["argv"], files, stdin, Limits(**header["limits"]), header["keep"])


def send_outcome(stream: IO[bytes], outcome: Outcome | SandboxError) -> None:
    """Write to a pipe the outcome of a command that ran in the sandbox, or the error of the sandbox."""
    if isinstance(outcome, SandboxError):
        _send(stream, {"error": str(outcome)}, [])
        return
    header = {
        "status": outcome.status,
        "exceeded": outcome.exceeded,
        "cpu_seconds": outcome.cpu_seconds,
        "wall_seconds": outcome.wall_seconds,
        "peak_memory": outcome.peak_memory,
    }
    blobs = [outcome.stdout, outcome.stderr, *outcome.files.values()]
    _send(stream, {"numbers": header, "files": list(outcome.files)}, blobs)


def receive_outcome(stream: IO[bytes]) -> Outcome:
    """Read from a pipe the outcome of a command that ran in the sandbox.

    Raises:
        EOFError: The pipe has ended.
        SandboxError: The command could not be run.
    """
    header, blobs = _receive(stream)
    if "error" in header:
        raise SandboxError(header["error"])
    stdout, stderr, *contents = blobs
    files = dict(zip(header["files"], contents, strict=True))
    return Outcome(**header["numbers"], stdout=stdout, stderr=stderr, files=files)


def _send(stream: IO[bytes], header: dict[str, Any], blobs: Sequence[bytes]) -> None:
    """Write a message to a pipe: a header and byte strings (blobs).

    The message has three parts: the length of a JSON object, this JSON object, and the bytes of all blobs.
    The JSON object contains the header and the lengths of the blobs in bytes.

    Args:
        stream: The pipe.
        header: The part of the message that can be written as JSON.
        blobs: The byte strings, such as the contents of files.
    """
    text = json.dumps({"header": header, "lengths": [len(blob) for blob in blobs]}).encode()
    stream.write(_LENGTH.pack(len(text)) + text)
    stream.writelines(blobs)
    stream.flush()


def _receive(stream: IO[bytes]) -> tuple[dict[str, Any], list[bytes]]:
    (length,) = _LENGTH.unpack(_read(stream, _LENGTH.size))
    message = json.loads(_read(stream, length))
    return message["header"], [_read(stream, length) for length in message["lengths"]]


def _read(stream: IO[bytes], length: int) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return data
