"""A request to run a command in the sandbox: the command, its input files and its limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from simllm.errors import InputError
from simllm.execution.resource_limits import Limits


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
