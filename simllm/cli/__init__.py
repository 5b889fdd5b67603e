"""The command `simllm`, with one module for each subcommand.

Each module declares the options of its subcommand, calls the Python API and prints the result. `options` are
always the parsed options of the subcommand. A *signature* is a text that names everything that can change a
score. `missing` is always a dict from the name of each metric that is not available to advice on how to make
it available.
"""

from __future__ import annotations

import argparse
import re
import sys
from importlib import import_module
from itertools import takewhile
from types import ModuleType
from typing import Any, NoReturn

import simllm
from simllm.cli import shared_options
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
#   WALKED           only if the command walks folders and checks itself that it reads none of its outputs
#                    there: the names of the arguments with these folders
# The module of a group of commands has HELP, EXAMPLES and COMMANDS (the modules of its commands).
# The commands are imported when the command line is parsed, so that the entry point is ready before.
_COMMANDS: tuple[str, ...] = ("score", "compare", "explain", "evaluate", "perturb", "repair", "mine", "split")
_COMMANDS += ("info", "selftest", "frequencies", "export", "playground")


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parse the words after `simllm`; the attribute `run` of the result is the function of the subcommand.

    Raises:
        SystemExit: The arguments ask for help or the version (status 0), or an option is wrong (status 2).
    """
    parser = _parser()
    for word in takewhile(lambda word: word != "--", arguments):
        if re.fullmatch("(--[a-z-]+=|-[a-z])--", word):  # argparse of Python 3.11 loses the value, and fails
            parser.error(f"argument {word[:-2].rstrip('=')}: expected a value, not --")
    return parser.parse_args(_with_correlation(arguments))


class _Parser(argparse.ArgumentParser):
    """Argument parser that reports an error in one line and exits with status 2.

    The attribute `text_arguments` of the options names the arguments that are texts, and never paths.
    """

    def add_argument(self, *names: Any, **keywords: Any) -> argparse.Action:
        """Add an argument, and remember it if it is a text."""
        action = super().add_argument(*names, **keywords)
        if not action.option_strings and action.type is None:
            self.set_defaults(text_arguments=(*(self.get_default("text_arguments") or ()), action.dest))
        return action

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print the help; argparse itself would ignore that standard output cannot be written."""
        (file or sys.stderr).write(message)

    def error(self, message: str) -> NoReturn:
        """Print an error message as one line, and exit with status 2."""
        self.exit(2, f"simllm: error: {on_one_line(message)} (see {self.prog} --help)\n")

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Refuse `OPTION=--`, which argparse takes for an option without a value."""
        if action.option_strings and arg_strings == ["--"]:
            raise argparse.ArgumentError(action, "expected a value, not --")
        return super()._get_values(action, arg_strings)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="simllm",
        description="Judge what models write about code and do to it: summaries, edits, labels, repairs.",
        epilog='example:\n  simllm score "adds two lists" "combines 2 arrays"\n',
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"simllm {simllm.__version__}")
    _add_commands(parser, tuple(import_module(f"{__name__}.{name}") for name in _COMMANDS))
    return parser


def _add_commands(parser: argparse.ArgumentParser, modules: tuple[ModuleType, ...]) -> None:
    """Add a subcommand for each module; the modules in its list `COMMANDS` become subcommands of the
    subcommand.
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
            shared_options.add_options(
                command,
                module.FORMATS,
                getattr(module, "MODEL", shared_options.MODEL),
                getattr(module, "OUTPUT", shared_options.OUTPUT),
            )
            texts = command.get_default("text_arguments") or ()
            walked = getattr(module, "WALKED", ())
            command.set_defaults(run=module.run, text_arguments=texts, walked=walked)


def _with_correlation(arguments: list[str]) -> list[str]:
    """Change `evaluate --ratings FILE`, which version 0.1 accepted, into `evaluate correlation --ratings
    FILE`.
    """
    short = arguments[:1] == ["evaluate"] and arguments[1:2] and arguments[1].startswith("--ratings")
    return ["evaluate", "correlation", *arguments[1:]] if short else arguments
