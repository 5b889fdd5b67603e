"""Exit status and output file of tools, the commands that do not train."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from simllm.errors import InputError
from simllm.io import files, folders
from train.runtime.signals import STOPPED_BY_KEYBOARD, Interrupted


def run_tool(work: Callable[[], object]) -> int:
    """Call `work`; print bad input or an interruption as one line on standard error.

    Returns:
        The exit status: 0 done, 2 bad input, 130 stopped by the keyboard, 75 if another signal
        stopped a training run that `work` had started.
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
        return STOPPED_BY_KEYBOARD
    return 0


def add_overwrite_option(parser: argparse.ArgumentParser) -> None:
    """Add the option `--overwrite`, for `check_output`."""
    parser.add_argument("--overwrite", action="store_true", help="replace the output if it exists")


def check_output(file: Path, overwrite: bool, inputs: Iterable[Path]) -> None:
    """Check that an output file can be written.

    Args:
        file: The output file.
        overwrite: Whether an existing file may be replaced.
        inputs: The input files of the command.

    Raises:
        InputError: `file` is an input, exists and may not be replaced, or its folder is missing.
    """
    files.check_output(file, inputs, overwrite)
    folders.check_place(file.parent)
    if not file.parent.is_dir():
        raise InputError(f"{file.parent}: no such folder")
