"""Messages between the supervisor, a process that runs commands in a sandbox, and its parent process.

The messages are sent through pipes. The parent process sends a request to run a command. The supervisor runs
the command, and sends the outcome back.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import asdict
from typing import IO, Any

from simllm.execution.resource_limits import Limits
from simllm.execution.sandbox_outcome import Outcome, SandboxError
from simllm.execution.sandbox_request import Request

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
