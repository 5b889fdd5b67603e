"""The runner of all commands of `train`: their options, errors in one line, and exit statuses.

The exit status is 0 after success, 1 if training diverged, and 2 for bad input. It is 75 or 130 if a signal
stopped the command; rerun the same command to resume.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from simllm.errors import InputError
from simllm.io.packages import missing_package
from train.runtime.signals import STOPPED_BY_KEYBOARD, Stopped


def make_parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """Make the parser of the command `python -m NAME`."""
    return argparse.ArgumentParser(
        prog=f"python -m {name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def run_command(
    parser: argparse.ArgumentParser,
    work: Callable[..., object],
    *,
    overwrite: bool = False,
    intermixed: bool = False,
) -> int:
    """Call `work` with the options of the command line, by their names; return the exit status.

    With `overwrite`, the command has the flag `--overwrite`. With `intermixed`, options may stand between the
    values of a positional argument, such as `key=value`.
    """
    if overwrite:
        parser.add_argument("--overwrite", action="store_true", help="replace the output if it exists")
    try:
        work(**vars(parser.parse_intermixed_args() if intermixed else parser.parse_args()))
    except BaseException as error:
        status = report(error)
        if status is None:
            raise
        return status
    return 0


def report(error: BaseException) -> int | None:
    """Print the line that says why a command ended, and return its status; None for an unexpected error."""
    package = error.name if isinstance(error, ModuleNotFoundError) else None
    if isinstance(error, Stopped):
        line, status = str(error), error.status
    elif isinstance(error, InputError):
        line, status = f"error: {error}", 2
    elif isinstance(error, KeyboardInterrupt):
        line, status = "interrupted", STOPPED_BY_KEYBOARD
    elif package and package.partition(".")[0] not in ("train", "simllm"):
        line, status = f"error: {missing_package(package, 'train,code,eval')}", 2
    else:
        return None
    if line:
        print(line, file=sys.stderr)
    return status
