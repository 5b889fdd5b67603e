"""Messages between caller and supervisor through pipes: requests to run commands, and their outcomes."""

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
    """Failure of the sandbox itself, which says nothing about the program that should have run."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a command that ran in the sandbox.

    Attributes:
        status: The exit status; 128 + N if signal N ended the command, as in a shell.
        exceeded: The limit that the run exceeded: "time", "memory" or "output"; None if it exceeded none.
        stdout: Standard output, cut off at the limit; so is `stderr`.
        cpu_seconds: Processor time of all processes.
        peak_memory: Peak of the resident memory in bytes.
        files: The contents of the kept files, by path in the working folder, up to the disk limit in all.
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
        files: The content of each file to write into the working folder before the run, by relative path.
        keep: Patterns, as in `fnmatch`, for relative paths of files to return in the outcome.
    """

    argv: Sequence[str]
    files: Mapping[str, bytes]
    stdin: bytes
    limits: Limits
    keep: Sequence[str]

    def __post_init__(self) -> None:
        for name in self.files:
            path = PurePosixPath(name)
            if path.is_absolute() or not path.parts or ".." in path.parts or "\0" in name:
                raise InputError(f"{name!r}: expected a path inside the working folder")


_LENGTH = struct.Struct("!Q")


def send_request(stream: IO[bytes], request: Request) -> None:
    """Write a request to a pipe."""
    header = {
        "argv": list(request.argv),
        "files": list(request.files),
        "limits": asdict(request.limits),
        "keep": list(request.keep),
    }
    _send(stream, header, [request.stdin, *request.files.values()])


def receive_request(stream: IO[bytes]) -> Request:
    """Read a request from a pipe; raise `EOFError` at its end."""
    header, (stdin, *contents) = _receive(stream)
    files = dict(zip(header["files"], contents, strict=True))
    return Request(header["argv"], files, stdin, Limits(**header["limits"]), header["keep"])


def send_outcome(stream: IO[bytes], outcome: Outcome | SandboxError) -> None:
    """Write to a pipe the outcome of a command, or the error of the sandbox."""
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
    """Read an outcome from a pipe; raise the `SandboxError` sent instead, or `EOFError` at its end."""
    header, blobs = _receive(stream)
    if "error" in header:
        raise SandboxError(header["error"])
    stdout, stderr, *contents = blobs
    files = dict(zip(header["files"], contents, strict=True))
    return Outcome(**header["numbers"], stdout=stdout, stderr=stderr, files=files)


def _send(stream: IO[bytes], header: dict[str, Any], blobs: Sequence[bytes]) -> None:
    """Write the length of a JSON object, the object (header and lengths of the blobs), and the blobs."""
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
