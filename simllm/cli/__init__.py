"""The command `simllm`, with one module for each subcommand.

Each module declares the options of its subcommand, calls the Python API and prints the result.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import simllm
from simllm.cli import (
    compare,
    evaluate,
    explain,
    export,
    frequencies,
    info,
    mine,
    perturb,
    playground,
    repair,
    score,
    selftest,
    split,
)
from simllm.errors import InputError
from simllm.io.tables import on_one_line

# The module of a command has:
#   HELP, EXAMPLES   texts for --help
#   FORMATS          the values of --format; empty if the command has no such option
#   run              the function that runs the command; it may return an exit status
#   add_options      only if the command has its own options
#   MODEL            only if --model is not a model folder: the placeholder of its value, and its help; None
#                    if the command has no --model
#   OUTPUT           only if -o is not a file: the placeholder of its value, and its help; None if the command
#                    has no -o. A command whose -o is a folder has no --overwrite, because it replaces only
#                    folders that simllm wrote.
# The module of a group of commands has HELP, EXAMPLES and COMMANDS (the modules of its commands).
_WORK: tuple[ModuleType, ...] = (score, compare, explain, evaluate, perturb, repair, mine, split)
_COMMANDS = (*_WORK, info, selftest, frequencies, export, playground)
_MODEL = ("FOLDER", "a model folder; default: the included one")
_OUTPUT = ("FILE", "write to FILE, not to stdout")


def main(arguments: list[str] | None = None) -> int:
    """Run the command `simllm`, and return its exit status.

    Args:
        arguments: The command-line words after `simllm`; None for the command line of this process.

    Returns:
        0 for success, 1 for an incomplete result, 2 for bad input, 130 after Ctrl+C, and 141 if standard
        output is a pipe whose reader has ended.

    Raises:
        SystemExit: The arguments ask for help or the version (status 0), or an option is wrong (status 2).
    """
    options = _parser().parse_args(_with_correlation(sys.argv[1:] if arguments is None else arguments))
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning if not options.quiet else lambda *_, **__: None
        try:
            status: int | None = options.run(options)
            sys.stdout.flush()
        except InputError as error:
            print(f"simllm: error: {on_one_line(str(error))}", file=sys.stderr)
            return 2
        except OSError as error:
            # Drop the rest of standard output; otherwise Python prints an error when it exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if isinstance(error, BrokenPipeError):  # the reader, such as `head`, has ended
                return 141
            where = error.filename or "standard output"
            print(f"simllm: error: {where}: cannot be written ({error.strerror})", file=sys.stderr)
            return 2
        except KeyboardInterrupt as stop:
            print("simllm: interrupted", *stop.args, file=sys.stderr)
            return 130
    return status or 0


class _Parser(argparse.ArgumentParser):
    """Argument parser that reports an error in one line and exits with status 2."""

    def error(self, message: str) -> NoReturn:
        """Print an error message as one line, and exit with status 2."""
        self.exit(2, f"simllm: error: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    """Build the argument parser for `simllm` and all its subcommands."""
    parser = _Parser(
        prog="simllm",
        description="Judge what models write about code and do to it: summaries, edits, labels, repairs.",
        epilog='example:\n  simllm score "adds two lists" "combines 2 arrays"\n',
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"simllm {simllm.__version__}")
    _add_commands(parser, _COMMANDS)
    return parser


def _add_commands(parser: argparse.ArgumentParser, modules: tuple[ModuleType, ...]) -> None:
    """Add one subcommand to a parser for each module.

    Args:
        parser: The parser of `simllm`, or of a command such as `simllm evaluate`.
        modules: Modules of this package, one for each subcommand. A subcommand has the name of its module.
            If a module has a list `COMMANDS`, its subcommand gets further subcommands: one for each module in
            this list. For example, `evaluate` gets the subcommand `correlation`.
    """
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", parser_class=_Parser)
    for module in modules:
        command = commands.add_parser(
            module.__name__.rpartition(".")[2].rstrip("_"),  # `import_`, because `import` is a keyword
            help=module.HELP,
            description=module.HELP[0].upper() + module.HELP[1:] + ".",
            epilog=module.EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if hasattr(module, "COMMANDS"):
            _add_commands(command, module.COMMANDS)
        else:
            if hasattr(module, "add_options"):
                module.add_options(command)
            _add_common_options(
                command,
                module.FORMATS,
                getattr(module, "MODEL", _MODEL),
                getattr(module, "OUTPUT", _OUTPUT),
            )
            command.set_defaults(run=module.run)


def _add_common_options(
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
        command.add_argument("-o", "--output", type=_output, metavar=output[0], help=output[1])
    if output == _OUTPUT:
        command.add_argument("--overwrite", action="store_true", help="replace the file of -o if it exists")
    command.add_argument("-q", "--quiet", action="store_true", help="no warnings, no progress bar")


def _with_correlation(arguments: list[str]) -> list[str]:
    """Change the old command line `evaluate --ratings FILE` into `evaluate correlation --ratings FILE`.

    Version 0.1 of simllm accepted the old form.

    Args:
        arguments: The command-line words after `simllm`.

    Returns:
        The words with `correlation` inserted. If the words are not in the old form, they stay unchanged.
    """
    short = arguments[:1] == ["evaluate"] and arguments[1:2] and arguments[1].startswith("--ratings")
    return ["evaluate", "correlation", *arguments[1:]] if short else arguments


def _output(name: str) -> Path | None:
    """Return the path that `-o` names; None for `-`, which is standard output."""
    if not name:
        raise argparse.ArgumentTypeError("expected a file name, not an empty text")
    return None if name == "-" else Path(name)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"simllm: warning: {message}", file=sys.stderr)
