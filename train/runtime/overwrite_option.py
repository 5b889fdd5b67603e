"""The option `--overwrite` of command-line tools, and the check of the output file."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from simllm.errors import InputError
from simllm.io import output_file
from simllm.io.output_folder import OutputFolder


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
