"""The parser of the command line, which imports the module of the chosen subcommand alone."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import takewhile
from typing import Any, NoReturn

import simllm
from simllm.cli import shared_options
from simllm.io.tables import on_one_line

# The commands with their help; those of a group begin with its name. The module of a command has:
#   EXAMPLES         text for --help
#   FORMATS          the values of --format; empty if the command has no such option
#   Options          a frozen dataclass with a field for each option. Its defaults are those of the options.
#   run              the function that runs the command with `Options`; it may return an exit status
#   add_options      only if the command has its own options
#   MODEL            only if --model is not a model folder: the placeholder of its value, and its help; None
#                    if the command has no --model
#   OUTPUT           only if -o is not a file: the placeholder of its value, and its help; None if the command
#                    has no -o. A command whose -o is a folder has no --overwrite, because it replaces only
#                    folders that simllm wrote.
#   WALKED           only if the command walks folders and checks itself that it reads none of its outputs
#                    there: the names of the arguments with these folders
# A group of commands is a package with EXAMPLES.
COMMANDS = {
    "score": "score pairs of a candidate and a reference",
    "compare": "compare systems, with intervals and significance tests",
    "explain": "show which words make a score",
    "check": "find comments that do not fit their code, or no longer do after a change",
    "evaluate": "evaluate metrics (agreement with people, contrast, robustness), code edits, classifiers, "
    "rewrites",
    "evaluate correlation": "correlate metrics with human ratings (Spearman)",
    "evaluate study": "answer the paper's five questions as a page, JSON and LaTeX",
    "evaluate contrast": "test whether a rewording scores higher than a change of meaning",
    "evaluate robustness": "edit summaries by rule and test whether scores follow the meaning",
    "evaluate edits": "compare systems that edit code: a page, JSON and LaTeX",
    "evaluate classifiers": "judge classifiers by a whole protocol: a page, JSON and LaTeX",
    "evaluate metamorphic": "measure what rewrites of code do to a tool's success: a page and JSON",
    "perturb": "rewrite code so that it behaves the same, or attack prompts and inputs of classifiers",
    "perturb code": "rewrite Java and Python code so that it behaves the same",
    "perturb text": "attack prompts and inputs: typos, synonyms, added sentences",
    "repair": "let models repair code, and judge the repaired programs by tests",
    "repair run": "let a model repair programs, or summarize code, in rounds",
    "repair report": "write a report of runs: figures, and a page for each item",
    "repair import": "convert published incorrect programs into items of `simllm repair run`",
    "repair sandbox": "try out what contains programs here, and list the compilers",
    "generate": "ask a language model a question about each item",
    "mine": "build data sets from git histories: repayments of technical debt",
    "mine satd": "find commits that repay self-admitted technical debt, such as TODO comments",
    "split": "split items into training, validation and test data, or into folds",
    "info": "describe a model folder",
    "selftest": "check scores and speed on this machine",
    "frequencies": "count tokens in references, to weigh tokens; or n-grams in code, for CrystalBLEU",
    "export": "write the model as ONNX, or as a web page that scores in the browser",
    "serve": "score over HTTP, and give rewards to trainers",
    "playground": "try the metric in the browser, on a page that only this machine can reach",
}


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parse the words after `simllm`; the attribute `module` of the result is that of the subcommand.

    Raises:
        SystemExit: The arguments ask for help or the version (status 0), or an option is wrong (status 2).
    """
    parser = _Parser(
        prog="simllm",
        description="Judge what models write about code and do to it: summaries, edits, labels, repairs.",
        epilog='example:\n  simllm score "adds two lists" "combines 2 arrays"\n',
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"simllm {simllm.__version__}")
    _add_commands(parser, "")
    for word in takewhile(lambda word: word != "--", arguments):
        if re.fullmatch("(--[a-z-]+=|-[a-z])--", word):  # argparse of Python 3.11 loses the value, and fails
            parser.error(f"argument {word[:-2].rstrip('=')}: expected a value, not --")
    return parser.parse_args(_with_correlation(arguments))


class _Parser(argparse.ArgumentParser):
    """Argument parser that reports an error in one line and exits with status 2.

    `complete` adds everything that needs the module of the command, when the parser is first used.
    """

    def __init__(self, *, complete: Callable[[_Parser], None] | None = None, **keywords: Any) -> None:
        super().__init__(**keywords)
        self._complete = complete

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Complete the parser, and parse."""
        complete, self._complete = self._complete, None
        if complete:
            complete(self)
        return super().parse_known_args(args, namespace)

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


def _add_commands(parser: argparse.ArgumentParser, group: str) -> None:
    """Add the commands of a group to its parser; their modules are imported when one is parsed."""
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", parser_class=_Parser)
    for name, text in COMMANDS.items():
        above, _, last = name.rpartition(" ")
        if above == group:
            commands.add_parser(
                last,
                help=text,
                description=text[0].upper() + text[1:] + ".",
                formatter_class=argparse.RawDescriptionHelpFormatter,
                complete=partial(_complete, name),
            )


def _complete(name: str, command: _Parser) -> None:
    """Add the options, or the commands of a group, to the parser of a command."""
    path = name.replace(" ", ".").replace(".import", ".import_")  # `import` is a keyword
    module = import_module(f"simllm.cli.{path}")
    command.epilog = module.EXAMPLES
    if any(other.startswith(f"{name} ") for other in COMMANDS):
        _add_commands(command, name)
        return
    if hasattr(module, "add_options"):
        module.add_options(command)
    shared_options.add_options(
        command,
        module.FORMATS,
        getattr(module, "MODEL", shared_options.MODEL),
        getattr(module, "OUTPUT", shared_options.OUTPUT),
    )
    actions = command._actions
    given = shared_options.defaults(module.Options)
    command.set_defaults(
        module=module,
        # Texts are never taken for paths.
        text_arguments=[one.dest for one in actions if not one.option_strings and one.type is None],
        walked=getattr(module, "WALKED", ()),
        flags={one.dest: one.option_strings[-1] for one in actions if one.option_strings},
        **{one.dest: given[one.dest] for one in actions if one.dest in given},
    )


def _with_correlation(arguments: list[str]) -> list[str]:
    """Change `evaluate --ratings FILE`, which version 0.1 accepted, into `evaluate correlation --ratings
    FILE`.
    """
    short = arguments[:1] == ["evaluate"] and arguments[1:2] and arguments[1].startswith("--ratings")
    return ["evaluate", "correlation", *arguments[1:]] if short else arguments
