"""Checks, before long work, that a command may write its output, and that no input is named twice."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from pathlib import Path

from simllm.errors import InputError
from simllm.io.read_lines import is_stdin
from simllm.io.real_path import real


def check_output(file: Path | None, inputs: Iterable[Path], overwrite: bool) -> None:
    """Check that a command may write its output file, before the command does long work.

    Args:
        file: The output file; None means standard output, which is always allowed.
        inputs: The input files of the command.
        overwrite: Whether the output may replace an existing file that has content. An empty file, a pipe or
            a device is always allowed.

    Raises:
        InputError: The output file is also an input file, it is a folder, it exists and may not be replaced,
            or its folder does not exist.
    """
    if file is None:
        return
    for read in inputs:
        if not is_stdin(read) and real(read) == real(file):
            raise InputError(f"{file}: would overwrite what is read")
    try:
        status = file.stat()
    except FileNotFoundError:
        if not real(file).parent.is_dir():
            raise InputError(f"{file}: cannot be written (no such folder)") from None
        return
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror})") from None
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{file}: cannot be written (it is a folder)")
    if stat.S_ISREG(status.st_mode) and status.st_size and not overwrite:
        raise InputError(f"{file}: exists already; --overwrite replaces it")


def check_different(inputs: Iterable[Path]) -> None:
    """Check that no input file or folder of a command is named twice, even by two different paths.

    Args:
        inputs: The paths of the inputs.

    Raises:
        InputError: Two paths lead to the same file or folder, after following all symbolic links.
    """
    known = set[Path]()
    for path in inputs:
        if real(path) in known:
            raise InputError(f"{path}: is named twice")
        known.add(real(path))
