"""The outcome of a command that ran in the sandbox, and the error for a failure of the sandbox itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from simllm.errors import InputError


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
