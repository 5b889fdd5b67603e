"""The exit status of command-line tools, such as 2 for bad input.

`train.pretrain`, `train.distill` and `train.contrastive` use `train.runtime.command` instead.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from simllm.errors import InputError
from simllm.io import output_file
from simllm.io.output_folder import OutputFolder
from train.runtime.signals import STOPPED_BY_KEYBOARD, Interrupted


def run_tool(work: Callable[[], object]) -> int:
    """Run a tool's work and turn its errors into an exit status.

    Bad input or an interruption is printed as one line on standard error.

    Args:
        work: The function that does the tool's work. Its result is ignored.

    Returns:
        The exit status: 0 for success, 2 for bad input, 130 after Ctrl-C. It is 75 if another signal
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
    """Add the flag `--overwrite`, which allows a tool to replace an existing output file, to a parser.

    Most tools pass the value of the flag to the function `check_output` of this module.
    """
    parser.add_argument("--overwrite", action="store_true", help="replace the output if it exists")


def check_output(file: Path, overwrite: bool, inputs: Iterable[Path]) -> None:
    """Check that a tool can write its output file.

    Args:
        file: The output file.
        overwrite: Whether an existing file may be replaced.
        inputs: The tool's input files, which must not be replaced.

    Raises:
        InputError: `file` is one of `inputs`, `file` exists although `overwrite` is false, or the folder of
            `file` does not exist.
    """
    output_file.check_output(file, inputs, overwrite)
    OutputFolder(file.parent).check_place()
    if not file.parent.is_dir():
        raise InputError(f"{file.parent}: no such folder")
