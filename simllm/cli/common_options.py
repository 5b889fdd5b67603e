"""The options that most subcommands have: `--model`, `--format`, `-o`, `--overwrite` and `--quiet`."""

from __future__ import annotations

import argparse
from pathlib import Path

MODEL = ("FOLDER", "a model folder; default: the included one")
OUTPUT = ("FILE", "write to FILE, not to stdout")


def add_options(
    command: argparse.ArgumentParser,
    formats: tuple[str, ...],
    model: tuple[str, str] | None,
    output: tuple[str, str] | None,
) -> None:
    """Add the options that most subcommands have, such as `--model`, `--output` and `--quiet`.

    Args:
        command: The parser of a subcommand.
        formats: The values that `--format` accepts; empty if the subcommand has no such option.
        model: The placeholder for the value of `--model`, and the help text of the option; None if the
            subcommand has no such option.
        output: The placeholder for the value of `-o`, and the help text of the option; None if the subcommand
            has no such option.
    """
    if model:
        command.add_argument("--model", metavar=model[0], help=model[1])
    if formats:
        default = "text on a terminal, tsv in a pipe or file" if "tsv" in formats else formats[0]
        command.add_argument("-f", "--format", choices=formats, help=f"default: {default}")
    if output:
        command.add_argument("-o", "--output", type=_output_file, metavar=output[0], help=output[1])
    if output == OUTPUT:
        command.add_argument("--overwrite", action="store_true", help="replace the file of -o if it exists")
    command.add_argument("-q", "--quiet", action="store_true", help="no warnings, no progress bar")


def _output_file(name: str) -> Path | None:
    """Return the path that `-o` names; None for `-`, which is standard output."""
    if not name:
        raise argparse.ArgumentTypeError("expected a file name, not an empty text")
    return None if name == "-" else Path(name)
