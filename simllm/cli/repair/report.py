"""`simllm repair report`: compare runs of `simllm repair run`, and write a report."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from simllm.cli import results
from simllm.cli.repair.run import add_rpsr_option
from simllm.cli.shared_options import CommonOptions
from simllm.errors import InputError
from simllm.io import packages

MODEL = None
FORMATS: tuple[str, ...] = ()  # always a folder
OUTPUT = ("DIR", "folder of the report")
EXAMPLES = """example:
  simllm repair report runs/cref runs/single -o report
"""


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """The options of `simllm repair report`."""

    runs: list[Path]
    rpsr: str = "mean"


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `simllm repair report` to its parser."""
    command.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="folders of `simllm repair run`")
    add_rpsr_option(command)


def run(options: Options) -> None:
    """Run `simllm repair report`: compare runs on HTML pages."""
    if options.output is None:
        raise InputError("expected -o DIR, the folder of the report")
    with packages.require_eval_extra():
        from simllm.repair import report
    results.tell(report.write(options.runs, options.output, options.rpsr))
    print(options.output / report.PAGE)
