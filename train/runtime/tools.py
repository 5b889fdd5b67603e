"""The exit status of command-line tools; the training stages use `training_exit_status` instead."""

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
    """Run a tool's work; print bad input or an interruption in one line, and return the exit status.

    The status is 0 for success, 2 for bad input, 130 after Ctrl-C, and 75 if another signal stopped a
    training run that `work` had started.
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
    """Add the flag `--overwrite`; most tools pass its value to `check_output`."""
    parser.add_argument("--overwrite", action="store_true", help="replace the output if it exists")


def check_output(file: Path, overwrite: bool, inputs: Iterable[Path]) -> None:
    """Check that a tool can write its output file, and that the file is none of the tool's inputs."""
    output_file.check_output(file, overwrite, inputs)
    OutputFolder(file.parent).check_place()
    if not file.parent.is_dir():
        raise InputError(f"{file.parent}: no such folder")
