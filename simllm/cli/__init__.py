"""The command `simllm`: every subcommand is one thin call of the API."""

from __future__ import annotations

import argparse
import io
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import simllm
from simllm.cli import compare, explain, export, frequencies, info, score, selftest
from simllm.cli import evaluate as evaluation
from simllm.errors import InputError
from simllm.io import tables

_COMMANDS = {
    score: "score pairs of a candidate and a reference",
    compare: "compare systems, with intervals and significance",
    explain: "show which words make a score",
    info: "tell what a model folder is",
    selftest: "check scores and speed on this machine",
    frequencies: "count how many references hold each token, to weigh tokens by",
    export: "write the model as ONNX",
}

# oneDNN and PyTorch each keep the kernels of 1,024 shapes: half a gigabyte, and no time is saved, as
# neighbours in length have one shape. Set by the command, not by the package: all of a process shares them.
_KERNEL_CACHES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit status: 0, 2 for bad input, 130 when interrupted
    (scoring, also when terminated).
    """
    for stream in (sys.stdout, sys.stderr):  # what the locale cannot show is escaped, not fatal
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    options = _parser().parse_args(arguments)
    for cache in _KERNEL_CACHES:
        os.environ.setdefault(cache, "16")
    warnings.showwarning = _show_warning if not options.quiet else lambda *_, **__: None
    try:
        options.run(options)
        sys.stdout.flush()
    except InputError as error:
        print(f"simllm: error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        if isinstance(error, BrokenPipeError):  # the reader, such as head, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 141
        print(f"simllm: error: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        print("simllm: interrupted", *stop.args, file=sys.stderr)
        return 130
    return 0


class _Parser(argparse.ArgumentParser):
    """Answers a wrong command line by one line, as everything else is answered."""

    def error(self, message: str) -> NoReturn:
        """Print the line and exit with status 2."""
        self.exit(2, f"simllm: error: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="simllm",
        description="Does a generated code summary say the same as the reference?",
        epilog='example:\n  simllm score "adds two lists" "combines 2 arrays"\n',
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"simllm {simllm.__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    for module, help_ in _COMMANDS.items():
        name = module.__name__.rpartition(".")[2]
        module.add_options(_command(commands, name, help_, module.EXAMPLES, module.FORMATS))
    evaluate = _command(
        commands, "evaluate", "correlate metrics with human ratings (Spearman)", evaluation.EXAMPLES
    )
    evaluation.add(evaluate, _command)
    return parser


def _command(
    commands: argparse._SubParsersAction[_Parser],
    name: str,
    help_: str,
    examples: str,
    formats: Sequence[str] = tables.FORMATS,
) -> argparse.ArgumentParser:
    """Add a subcommand with the options that all of them have."""
    command = commands.add_parser(
        name,
        help=help_,
        description=help_[0].upper() + help_[1:] + ".",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("--model", metavar="FOLDER", help="a model folder; default: the one included")
    if formats:
        default = "text on a terminal, tsv in a pipe or file" if "tsv" in formats else formats[0]
        command.add_argument("-f", "--format", choices=formats, help=f"default: {default}")
    command.add_argument("-o", "--output", type=_output, metavar="FILE", help="write there, not to stdout")
    command.add_argument("--overwrite", action="store_true", help="replace the file of -o if it exists")
    command.add_argument("-q", "--quiet", action="store_true", help="no warnings, no bar")
    return command


def _output(name: str) -> Path | None:
    return None if name == "-" else Path(name)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"simllm: warning: {message}", file=sys.stderr)
