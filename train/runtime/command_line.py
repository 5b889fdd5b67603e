"""The exit status and the output file of the commands that do not train."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from simllm.errors import InputError
from simllm.io import files, folders
from train.runtime.signals import INTERRUPTED, Interrupted


def exit_status(work: Callable[[], object]) -> int:
    """Do a command's work; print bad input or an interruption as one line.

    Returns:
        The exit status: 0 done, 2 bad input, 130 from the keyboard, 75 if a training run that the
        command started was stopped by another signal.
    """
    try:
        work()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except Interrupted as interrupted:
        print(interrupted, file=sys.stderr)
        return interrupted.status
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    return 0


def add_overwrite(parser: argparse.ArgumentParser) -> None:
    """Add the option `--overwrite`, which `check_output` asks for."""
    parser.add_argument("--overwrite", action="store_true", help="replace the output if it exists")


def check_output(file: Path, overwrite: bool, inputs: Iterable[Path]) -> None:
    """Raise InputError if `file` is an input, exists and may not be replaced, or has no place to be in."""
    files.check_output(file, inputs, overwrite)
    folders.check_place(file.parent)
    if not file.parent.is_dir():
        raise InputError(f"{file.parent}: no such folder")
